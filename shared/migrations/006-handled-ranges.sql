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
  -- How often it has looked since all of these were due, and the newest event of ours, and of the stream, at the first of these looks.
  looks int not null default 0,
  newest_seq bigint not null default 0,
  stream_seq bigint not null default 0,
  -- Whether the consumer had passed them by the last of these looks: it had been given them, and had none in hand, or never will be.
  was_passed boolean not null default false,
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
