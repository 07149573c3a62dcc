-- The platform's ids of messages that were deleted for their age, as long as a callback may come again that would bring them back.
create table deleted_messages (
  organization_id text not null,
  upstream_id text not null,
  deleted_at timestamptz(3) not null default now(),
  primary key (organization_id, upstream_id)
) with (autovacuum_vacuum_scale_factor = 0.05);
create index deleted_messages_age on deleted_messages (deleted_at);
