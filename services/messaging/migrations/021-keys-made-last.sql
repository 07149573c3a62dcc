-- A queue that was empty when it was vacuumed promises one row by any index, also by one in which the number comes second,
-- which then is read whole; and the plan is kept while the queue fills. Of indexes that promise the same, Postgres takes the one that was made last.
alter table sends drop constraint sends_pkey, add primary key (seq);
alter table callback_items drop constraint callback_items_pkey, add primary key (seq);
alter table media_copies drop constraint media_copies_pkey, add primary key (seq);
