-- Inbound files that are still to be copied from the platform.
create table media_copies (
  seq bigint generated always as identity primary key,
  organization_id text not null,
  phone_number_id text not null,
  media_id text not null,
  -- The organization.
  lane text not null,
  upstream_media_id text not null,
  -- As the callback said it.
  sha256 text,
  attempts int not null default 0,
  -- Set while it is worked on; found set by the next holder, the last one died over it.
  begun_at timestamptz,
  due_at timestamptz not null default now(),
  -- What is told when the file is there, or without it at `event_due_at`; null when it was told, or nothing is to be told.
  event jsonb,
  event_due_at timestamptz not null,
  created_at timestamptz not null default now()
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
create index media_copies_lane on media_copies (lane, due_at);
create index media_copies_media on media_copies (organization_id, media_id);
create index media_copies_untold on media_copies (event_due_at) where event is not null;

-- A lane is an organization, so that one with slow files delays no other.
create table media_lanes (
  id text primary key,
  grp text not null,
  due_at timestamptz,
  held_until timestamptz not null default '-infinity',
  arrivals bigint not null default 0,
  failures int not null default 0,
  paced_until timestamptz not null default '-infinity'
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
create index media_lanes_due on media_lanes (grp, due_at) where due_at is not null;
