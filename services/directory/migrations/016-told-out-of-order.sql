-- When others have ended in a conversation, last_inbound_at is the newest of theirs and its own; this is its own. Null: none has, or did
-- before this was kept.
alter table conversations add column own_inbound_at timestamptz(3);
-- Which number and user id a person left by a change, for which names, and when: an earlier change, told later, is to end there as well.
-- Null: it left none, or was made before this was kept.
alter table identity_changes add column left_wa_id text collate "C", add column left_bsuid text collate "C", add column current json,
  add column at timestamptz(3);
create index identity_changes_left_wa_id on identity_changes (left_wa_id, phone_number_id, organization_id) where left_wa_id is not null;
create index identity_changes_left_bsuid on identity_changes (left_bsuid, phone_number_id, organization_id) where left_bsuid is not null;
alter table identity_changes alter column current set statistics 0;
