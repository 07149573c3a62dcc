create table messages (
  organization_id text not null,
  phone_number_id text not null,
  id text collate "C" not null,
  conversation_id text not null,
  contact_id text not null,
  direction text not null check (direction in ('inbound', 'outbound')),
  type text not null,
  -- E.164 or a bsuid for outbound, null for inbound.
  recipient text,
  content text,
  -- The type's block as it goes to, or came from, the platform.
  body jsonb not null,
  -- Conversation and contact as they were, for events.
  parties jsonb not null,
  context_id text,
  source text not null default 'api',
  status text not null check (status in ('queued', 'sent', 'delivered', 'read', 'failed')),
  -- queued 0, unknown 2 (shown as failed), sent 3, delivered 4, read 5, failed by the platform 6. Never goes down.
  rank smallint not null,
  -- A bit for each status that was told: sent 1, delivered 2, read 4, failed 8, played 16.
  told smallint not null default 0,
  upstream_id text,
  error jsonb,
  unsupported text,
  played_at timestamptz(3),
  request_id text not null,
  traceparent text not null default '',
  created_at timestamptz(3) not null,
  primary key (organization_id, phone_number_id, id)
) with (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.05);
create unique index messages_upstream on messages (organization_id, upstream_id) where upstream_id is not null;
create index messages_conversation on messages (conversation_id, id);
create index messages_failed on messages (organization_id, phone_number_id, id) where status = 'failed';
