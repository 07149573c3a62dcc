-- Up to which of our events a consumer has handled all, as far as the stream has told it; 0: not known yet. From there a stream that was
-- lost is filled again.
create table handled_floors (
  consumer text primary key,
  seq bigint not null default 0,
  -- What it has reached once it has acked all of the stream up to `next_stream_seq`; null: nothing newer was published.
  next_seq bigint,
  next_stream_seq bigint
);
