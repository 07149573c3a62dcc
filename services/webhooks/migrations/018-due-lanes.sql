-- Lanes that are due, whatever waits beside them (shared/mailbox/claim-lanes.ts). Said in a way of its own, so that no other statement is planned with it.
create index lanes_soonest on lanes (coalesce(due_at, 'infinity')) where coalesce(due_at, 'infinity') < 'infinity';
