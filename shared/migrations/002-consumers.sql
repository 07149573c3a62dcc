-- Events that were handled, in the transaction of what they caused.
create table handled_events (
  consumer text not null,
  event_id text not null,
  handled_at timestamptz not null default now(),
  primary key (consumer, event_id)
);
create index handled_events_age on handled_events (handled_at);

-- Events that failed by themselves; `dead` after the eighth time.
create table dead_events (
  consumer text not null,
  event_id text not null,
  subject text not null,
  headers jsonb not null,
  payload bytea not null,
  failures int not null,
  dead boolean not null default false,
  last_error text not null,
  updated_at timestamptz not null default now(),
  primary key (consumer, event_id)
);
