-- As shared/migrations/007-published-changes.sql.
alter table callbacks replica identity full;
alter table callbacks_default replica identity full;
