-- Delta sync: what changed last, newest first. One index for a status and, as three ranges, for all of them: each inbound
-- message writes it.
create index conversations_changed on conversations (phone_number_id, organization_id, status, updated_at, id);
