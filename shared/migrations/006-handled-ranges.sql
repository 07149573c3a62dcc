-- Which events a consumer has handled, by their `seq` in the outbox of the service that they came from (the second word of their
-- subject). `first` and `last` are the ends of `seqs`.
create table handled_ranges (
  consumer text not null,
  source text not null,
  seqs int8multirange not null,
  first bigint not null,
  last bigint not null,
  at timestamptz not null default now()
);

-- How far it is sure that a consumer has handled our events: all up to `audited_seq`. Those up to `until_seq` are looked at next, when
-- there was time to handle them.
create table event_audits (
  consumer text primary key,
  audited_seq bigint not null,
  until_seq bigint,
  opened_at timestamptz
);

-- Rows come in about this order, so that an entry for some hundred pages is enough.
create index outbox_seq_range on outbox using brin (seq) with (autosummarize = on);
