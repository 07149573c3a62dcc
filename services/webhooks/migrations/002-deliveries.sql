-- What is delivered, byte for byte: once per event, however many subscriptions select it. Kept 30 days.
create table events (
  at timestamptz(3) not null,
  organization_id text not null,
  event_id text not null,
  type text not null,
  source text not null,
  payload text not null,
  primary key (at, organization_id, event_id)
) partition by range (at);
create table events_default partition of events default;

-- Every delivery, written once and never changed: 90 days. How it stands is told by the tables below: open (due_deliveries),
-- given up (dead_deliveries), else succeeded. So the row that every list reads has many indexes and costs no update.
create table deliveries (
  id text collate "C" not null primary key,
  organization_id text not null,
  subscription_id text collate "C" not null,
  event_type text not null,
  event_id text not null,
  replayed_from text
) partition by range (id);
create table deliveries_default partition of deliveries default;
create index deliveries_list on deliveries (organization_id, id);
create index deliveries_by_type on deliveries (organization_id, event_type, id);
create index deliveries_by_event on deliveries (organization_id, event_id, id);
create index deliveries_by_subscription on deliveries (subscription_id, id);
create index deliveries_by_subscription_and_type on deliveries (subscription_id, event_type, id);

-- Open deliveries: never tried (pending), or tried in vain and to be tried again (failed).
create table due_deliveries (
  id text collate "C" primary key,
  -- The order of arrival.
  seq bigint generated always as identity,
  organization_id text not null,
  subscription_id text collate "C" not null,
  event_at timestamptz(3) not null,
  event_id text not null,
  -- Deliveries of one line go one at a time, in their order; those behind the first have no due_at.
  line text,
  due_at timestamptz,
  -- The number of the last attempt, set before its call.
  attempts int not null default 0,
  -- Set with it, cleared with its outcome. Found set after its time, the holder died in the call.
  begun_at timestamptz(3),
  -- Places of the retry schedule that are used up: probes and answers that ask us to wait use none.
  tries int not null default 0,
  tried boolean not null default false
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
create index due_deliveries_lane on due_deliveries (subscription_id, due_at, seq);
create index due_deliveries_line on due_deliveries (subscription_id, line, seq) where line is not null;
create index due_deliveries_list on due_deliveries (organization_id, tried, id);

-- The dead-letter queue.
create table dead_deliveries (
  id text collate "C" primary key,
  organization_id text not null,
  subscription_id text collate "C" not null,
  -- Null: the last attempt says why.
  error_code text
);
create index dead_deliveries_list on dead_deliveries (organization_id, id);
create index dead_deliveries_by_subscription on dead_deliveries (subscription_id, id);

-- What each attempt came to. Kept 90 days, as the deliveries.
create table attempts (
  delivery_id text collate "C" not null,
  number int not null,
  started_at timestamptz(3) not null,
  duration_ms int,
  response_status int,
  response_body_snippet text,
  error_code text,
  error_message text,
  primary key (delivery_id, number)
) partition by range (delivery_id);
create table attempts_default partition of attempts default;
