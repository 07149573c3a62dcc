-- Events wait here from the transaction that made them until JetStream has them.
create sequence outbox_seq;
create table outbox (
  seq bigint not null default nextval('outbox_seq'),
  -- Organization, ':' and the event's own id: the dedupe key on the stream.
  id text not null,
  subject text not null,
  headers jsonb not null,
  payload bytea not null,
  created_at timestamptz not null default now(),
  published_at timestamptz,
  -- Why the client refused to publish it; such a row waits for nobody.
  refused text
) partition by range (created_at);
create table outbox_default partition of outbox default;
create index outbox_waiting on outbox (seq) where published_at is null and refused is null;

create table relay_position (
  one boolean primary key default true check (one),
  stream_created text not null,
  last_seq bigint not null
);
