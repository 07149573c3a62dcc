-- When others have ended in a conversation, last_inbound_at is the newest of theirs and its own; this is its own. Null: none has, or did
-- before this was kept.
alter table conversations add column own_inbound_at timestamptz(3);
