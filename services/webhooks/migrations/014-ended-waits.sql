-- Of a subscription whose URL is a new one: those of its deliveries that are due until then wait no longer, and are made due in
-- portions. Null: none are left, or the URL is not new.
alter table subscriptions add column waits_until timestamptz;
create index subscriptions_waits on subscriptions (id) where waits_until is not null;
