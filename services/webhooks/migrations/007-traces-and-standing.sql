-- The trace context of an event, when it is traced: attempts to deliver it belong to the same trace.
alter table events add column trace text;
-- Subscriptions that are not active are few and are counted often.
create index subscriptions_standing on subscriptions (status) where status <> 'active';
