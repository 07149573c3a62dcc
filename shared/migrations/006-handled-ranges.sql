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

-- How far a consumer has been asked about our events: all up to here were handled, or given up.
create table event_audits (
  consumer text primary key,
  audited_seq bigint not null
);

-- The newest event of the outbox in each of the last minutes.
create table outbox_marks (
  seq bigint primary key,
  at timestamptz not null default now()
);

-- Rows come in about this order, so that an entry for some hundred pages is enough.
create index outbox_seq_range on outbox using brin (seq) with (autosummarize = on);
