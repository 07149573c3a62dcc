-- Who copies changes out of the database (change data capture, logical replication) may publish all of its tables. Postgres then refuses each
-- update and deletion of a table without a key, which these are: `full` names a row by all that it has. It costs nothing else unless
-- `wal_level` is `logical`. The partitions of days take it over (shared/database/partitions.ts).
alter table handled_ranges replica identity full;
alter table outbox replica identity full;
alter table outbox_default replica identity full;
