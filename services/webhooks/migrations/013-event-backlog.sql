-- Events of organizations that have made more deliveries than their share of the fan-out. They wait here, each organization
-- behind its own, until its turn comes.
create table event_backlog (
  organization_id text collate "C" not null,
  event_id text collate "C" not null,
  -- The order of arrival.
  seq bigint generated always as identity,
  head jsonb not null,
  payload text not null,
  since timestamptz(3) not null default now(),
  primary key (organization_id, event_id)
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
create index event_backlog_turn on event_backlog (organization_id, seq);
