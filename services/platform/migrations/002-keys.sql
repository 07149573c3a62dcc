-- API keys. Of a key's text only the hash and the last four characters are kept.
create table api_keys (
  organization_id text collate "C" not null references organizations,
  id text collate "C" not null,
  -- sha256, hex.
  hash text collate "C" not null,
  label text not null,
  last4 text not null,
  expires_at timestamptz(3),
  revoked_at timestamptz(3),
  created_at timestamptz(3) not null default now(),
  primary key (organization_id, id),
  -- Over all organizations: a request brings its key alone, and an administrator names it by its id alone.
  constraint api_keys_hash unique (hash),
  constraint api_keys_id unique (id)
);
