-- When the organization connected the number last: of two that had it, the later one has it now. Null: before this release.
alter table accounts add column attached_at timestamptz(3);
