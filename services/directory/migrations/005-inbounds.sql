-- Inbound messages that were recorded, with what was answered, so that the same one again changes nothing. Swept after 8
-- days: the platform repeats a callback for at most 7.
create table inbounds (
  organization_id text collate "C" not null,
  phone_number_id text collate "C" not null,
  upstream_id text collate "C" not null,
  conversation_id text not null,
  status text not null,
  assigned_to text,
  contact_id text not null,
  contact_phone_number text,
  contact_name text,
  window_until timestamptz(3) not null,
  labels jsonb not null,
  recorded_at timestamptz not null default now(),
  primary key (organization_id, phone_number_id, upstream_id)
) with (autovacuum_vacuum_scale_factor = 0.05);
create index inbounds_age on inbounds (recorded_at);
