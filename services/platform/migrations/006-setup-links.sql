-- One-time links through which a customer connects a number. Of a token only the hash and the last four characters are kept.
create table setup_links (
  organization_id text collate "C" not null,
  id text collate "C" not null,
  customer_id text collate "C" not null,
  -- sha256, hex.
  token_hash text collate "C" not null,
  token_last4 text not null,
  -- An active one past `expires_at` is expired: whoever reads it says so.
  status text not null check (status in ('active', 'consumed', 'revoked')),
  success_redirect_url text,
  failure_redirect_url text,
  expires_at timestamptz(3) not null,
  consumed_at timestamptz(3),
  -- The account that it connected.
  account_id text collate "C",
  created_at timestamptz(3) not null,
  primary key (organization_id, id),
  -- Over all organizations: a visitor brings the token alone.
  constraint setup_links_token unique (token_hash),
  constraint setup_links_customer foreign key (organization_id, customer_id) references customers (organization_id, id),
  constraint setup_links_account foreign key (organization_id, account_id) references accounts (organization_id, id),
  constraint setup_links_consumed check ((status = 'consumed') = (consumed_at is not null and account_id is not null))
);
create index setup_links_of_customer on setup_links (organization_id, customer_id, id desc);
