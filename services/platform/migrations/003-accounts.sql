-- Connected numbers and their upstream credentials.
create table accounts (
  organization_id text collate "C" not null references organizations,
  id text collate "C" not null,
  -- Null while its onboarding has not come to a number yet.
  phone_number_id text collate "C",
  business_account_id text not null,
  -- E.164.
  phone_number text,
  name text,
  team_id text collate "C" not null,
  customer_id text collate "C",
  status text not null check (status in ('connected', 'disconnected', 'degraded', 'onboarding')),
  -- The platform's own word.
  upstream_status text,
  -- Whether the number is still this organization's to receive for.
  attached boolean not null default true,
  -- The bearer token, sealed (shared/seal.ts) for `account:<id>`; null while onboarding has not come to one.
  sealed_token text,
  -- Grows with every change of what other services keep of the account.
  version bigint not null default 1,
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  primary key (organization_id, id),
  constraint accounts_number unique (organization_id, phone_number_id),
  constraint accounts_team foreign key (organization_id, team_id) references teams (organization_id, id)
);

-- A callback names the number alone, so it belongs to one organization at a time.
create unique index accounts_attached_number on accounts (phone_number_id) where attached;
