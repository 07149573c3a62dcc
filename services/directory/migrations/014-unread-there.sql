-- How many unread messages a conversation still had when it ended in another, which counts them since. Null: it has not ended, or
-- did before this was kept.
alter table conversations add column unread_there int;
