-- Answers by idempotency key. The primary key decides, in the transaction that writes the effect. Swept in batches.
create table keys (
  organization_id text not null,
  key text not null,
  fingerprint text not null,
  -- 0 while an operation with a call to the upstream platform runs; then held_until is its lease.
  status int not null,
  answer bytea not null,
  -- Whether the answer holds a one-time secret and is sealed (shared/seal.ts), bound to this row.
  sealed boolean not null default false,
  held_until timestamptz,
  created_at timestamptz not null default now(),
  primary key (organization_id, key)
);
create index keys_age on keys (created_at);
