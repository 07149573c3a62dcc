-- Callbacks of the platform as they came, for 7 days.
create sequence callbacks_id;
create table callbacks (
  id bigint not null default nextval('callbacks_id'),
  received_at timestamptz not null default now(),
  body bytea not null,
  -- Why nothing was made of it: not JSON, or another shape.
  fault text
) partition by range (received_at);
create table callbacks_default partition of callbacks default;

-- Their parts that wait: one message, one status, or another change.
create table callback_items (
  seq bigint generated always as identity primary key,
  callback_id bigint not null,
  lane text not null,
  kind text not null check (kind in ('message', 'status')),
  item jsonb not null,
  attempts int not null default 0,
  received_at timestamptz not null default now()
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
create index callback_items_lane on callback_items (lane, seq);

-- A lane is a number, or a platform id whose message is not known yet; its group the organization.
create table callback_lanes (
  id text primary key,
  grp text not null,
  due_at timestamptz,
  held_until timestamptz not null default '-infinity',
  arrivals bigint not null default 0,
  failures int not null default 0,
  paced_until timestamptz not null default '-infinity'
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
create index callback_lanes_due on callback_lanes (grp, due_at) where due_at is not null;

-- Changes that nothing is made of: unknown numbers, unknown fields.
create table unhandled_changes (
  field text not null,
  reason text not null,
  day date not null default current_date,
  count bigint not null,
  primary key (day, field, reason)
);
