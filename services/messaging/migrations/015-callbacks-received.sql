-- What was received in a span of time, for driving it again: a block range index costs next to nothing at the insert.
create index callbacks_received on callbacks using brin (received_at) with (pages_per_range = 16);
