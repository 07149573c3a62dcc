create table subscriptions (
  id text collate "C" primary key,
  organization_id text not null,
  url text not null,
  description text,
  events text[] not null,
  -- Numbers whose events are delivered; null: all.
  phone_number_ids text[],
  status text not null default 'active' check (status in ('active', 'paused', 'disabled')),
  disabled_reason text,
  disabled_at timestamptz(3),
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null
);
create index subscriptions_list on subscriptions (organization_id, id);
create index subscriptions_by_status on subscriptions (organization_id, status, id);

-- Signing secrets, sealed and bound to their row (shared/seal.ts). Every one that has not expired signs.
create table secrets (
  id text collate "C" primary key,
  subscription_id text collate "C" not null references subscriptions on delete cascade,
  sealed text not null,
  created_at timestamptz(3) not null,
  expires_at timestamptz(3)
);
create index secrets_by_subscription on secrets (subscription_id, id);

-- A lane is a subscription, its group the organization (shared/lanes.ts). `paced_until`: Retry-After or an open breaker,
-- which an arrival does not cut short.
create table lanes (
  id text collate "C" primary key,
  grp text not null,
  due_at timestamptz,
  held_until timestamptz not null default '-infinity',
  arrivals bigint not null default 0,
  -- Failed attempts since the last success.
  failures int not null default 0,
  paced_until timestamptz not null default '-infinity'
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
create index lanes_due on lanes (grp, due_at) where due_at is not null;
