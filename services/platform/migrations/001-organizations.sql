-- The tenants, their teams and the members of these.
create table organizations (
  id text collate "C" primary key,
  name text not null,
  tier text not null,
  features text[] not null,
  subscription text not null check (subscription in ('active', 'lapsed')),
  -- Null: for ever.
  retention_days int,
  -- Those that were set; organizations/settings.ts has the others.
  settings jsonb not null default '{}',
  created_at timestamptz(3) not null default now()
);

create table teams (
  organization_id text collate "C" not null references organizations,
  id text collate "C" not null,
  name text not null,
  created_at timestamptz(3) not null default now(),
  primary key (organization_id, id),
  constraint teams_name unique (organization_id, name)
);

create table members (
  organization_id text collate "C" not null,
  id text collate "C" not null,
  team_id text collate "C" not null,
  name text not null,
  email text not null,
  created_at timestamptz(3) not null default now(),
  primary key (organization_id, id),
  constraint members_team foreign key (organization_id, team_id) references teams (organization_id, id)
);
