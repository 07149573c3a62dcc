-- Lanes that are due, whatever waits beside them (shared/mailbox/claim-lanes.ts). Said in a way of its own, so that no other statement is planned with it.
create index send_lanes_soonest on send_lanes (coalesce(due_at, 'infinity')) where coalesce(due_at, 'infinity') < 'infinity';
create index callback_lanes_soonest on callback_lanes (coalesce(due_at, 'infinity')) where coalesce(due_at, 'infinity') < 'infinity';
create index media_lanes_soonest on media_lanes (coalesce(due_at, 'infinity')) where coalesce(due_at, 'infinity') < 'infinity';
