-- When the organization connected the number last, as platform told: what is told late of one that had it before takes it from nobody.
alter table senders add column attached_at timestamptz(3);
