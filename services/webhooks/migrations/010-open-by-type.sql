-- The type of an open delivery: null in those that an instance of the version before has written. Without an index, which each
-- delivery would pay for: a list of one type passes over the others without looking them up.
alter table due_deliveries add column event_type text;
