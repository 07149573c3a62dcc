-- Jobs that replay many deliveries of a subscription. A job walks them by id, from `position` to `end_id`, and its position
-- moves in the transaction that enqueues, so that a crash neither repeats nor skips.
create table replays (
  id text collate "C" primary key,
  organization_id text not null,
  subscription_id text collate "C" not null,
  source text not null check (source in ('dead', 'failed')),
  -- Null: all.
  event_types text[],
  position text collate "C" not null,
  end_id text collate "C" not null,
  status text not null default 'queued' check (status in ('queued', 'running', 'completed', 'cancelled')),
  matched int not null,
  enqueued int not null default 0,
  succeeded int not null default 0,
  failed int not null default 0,
  -- Set when there are more than one job may take.
  next_since timestamptz(3),
  created_at timestamptz(3) not null,
  -- What died later is not its business.
  matched_at timestamptz not null default now(),
  finished_at timestamptz(3),
  -- When it is looked at again.
  due_at timestamptz not null default now()
);
create index replays_list on replays (organization_id, id);
create index replays_by_subscription on replays (organization_id, subscription_id, id);
create unique index replays_running on replays (subscription_id) where finished_at is null;
create index replays_due on replays (due_at) where finished_at is null;

alter table dead_deliveries add column died_at timestamptz not null default now();

-- Of a delivery that replays another: when the event was, which says where its payload stands. Null: the time in the id.
alter table deliveries add column event_at timestamptz(3);

alter table due_deliveries add column replay_id text collate "C";
create index due_deliveries_replay on due_deliveries (replay_id) where replay_id is not null and not tried;
