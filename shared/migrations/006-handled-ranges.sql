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

-- How far a consumer has been asked about our events: all up to `audited_seq` were handled, or given up. When a look found some behind them
-- that were not, it says what was seen at it.
create table event_audits (
  consumer text primary key,
  audited_seq bigint not null,
  -- Up to where it looked; null: nothing is missing.
  suspected_seq bigint,
  -- The newest event of ours by then.
  newest_seq bigint,
  -- Whether the consumer had handled all that the stream has for it.
  was_idle boolean,
  looked_at timestamptz,
  -- How often they were published again.
  tries int not null default 0
);

-- The newest event of the outbox in each of the last minutes.
create table outbox_marks (
  seq bigint primary key,
  at timestamptz not null default now()
);

-- Rows come in about this order, so that an entry for some hundred pages is enough.
create index outbox_seq_range on outbox using brin (seq) with (autosummarize = on);
