-- Open sends. A row leaves when its message is sent or failed.
create table sends (
  -- The order of acceptance.
  seq bigint generated always as identity primary key,
  organization_id text not null,
  phone_number_id text not null,
  message_id text not null,
  -- The conversation, unless a send that keeps failing was let out of its order.
  lane text not null,
  attempts int not null default 0,
  -- Set before the call, cleared with its outcome: found set by the next holder, the call's outcome is unknown.
  begun_at timestamptz,
  -- An unknown outcome waits until then for a callback that carries our id.
  parked_until timestamptz,
  expires_at timestamptz not null
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
create index sends_head on sends (lane, seq);

-- A lane is a conversation, its group the number.
create table send_lanes (
  id text primary key,
  grp text not null,
  due_at timestamptz,
  held_until timestamptz not null default '-infinity',
  arrivals bigint not null default 0,
  failures int not null default 0,
  paced_until timestamptz not null default '-infinity'
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
create index send_lanes_due on send_lanes (grp, due_at) where due_at is not null;

-- What each attempt came to.
create table send_attempts (
  organization_id text not null,
  message_id text not null,
  attempt int not null,
  begun_at timestamptz(3) not null,
  ended_at timestamptz(3) not null,
  outcome text not null,
  http_status int,
  upstream_code int,
  detail text,
  primary key (organization_id, message_id, attempt)
);
