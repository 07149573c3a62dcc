-- The organizations' numbers, as platform last said.
create table accounts (
  organization_id text collate "C" not null,
  phone_number_id text collate "C" not null,
  account_id text collate "C" not null,
  version bigint not null,
  -- E.164.
  phone_number text,
  customer_id text,
  customer_name text,
  team_id text not null,
  -- Whether the number is still this organization's to receive for; what it has stays readable when not.
  attached boolean not null,
  window_check text not null check (window_check in ('strict', 'upstream')),
  require_marketing_consent boolean not null,
  primary key (organization_id, phone_number_id)
);
