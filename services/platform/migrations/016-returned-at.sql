-- When the number was connected last, or came back to our app as the platform told: what was said of it before is over.
alter table accounts add column returned_at timestamptz(3);
