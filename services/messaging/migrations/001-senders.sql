-- Each organization's numbers, as platform last said; joined in the accept and in every claim.
create table senders (
  organization_id text not null,
  phone_number_id text not null,
  account_id text not null,
  business_account_id text not null,
  version bigint not null,
  phone_number text,
  name text,
  team_id text not null,
  customer_id text,
  -- Why a send is refused now, or null.
  refusal text,
  attached boolean not null,
  sealed_token text not null,
  settings jsonb not null,
  updated_at timestamptz not null default now(),
  primary key (organization_id, phone_number_id)
);
-- A callback names only the number (or only its business account), so these are global.
create unique index senders_attached on senders (phone_number_id) where attached;
create index senders_business_account on senders (business_account_id) where attached;

-- The pace of each number (GCRA): the theoretical arrival time and the interval of one send.
create table pace (
  grp text primary key,
  tat timestamptz not null default now(),
  interval_ms float8 not null
) with (fillfactor = 80);
