-- Who copies changes out of the database (change data capture, logical replication) may publish all of its tables. Postgres then refuses each
-- update and deletion of a table without a key, which these are: `full` names a row by all that it has. It costs nothing else unless
-- `wal_level` is `logical`. Later partitions take it over (shared/database/partitions.ts).
alter table handled_ranges replica identity full;
do $$
declare one regclass;
begin
  for one in select 'outbox'::regclass union all select inhrelid from pg_inherits where inhparent = 'outbox'::regclass loop
    execute format('alter table %s replica identity full', one);
  end loop;
end $$;
