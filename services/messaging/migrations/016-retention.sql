-- Days that the organization's messages are kept; null: for ever.
alter table senders add column retention_days int;
