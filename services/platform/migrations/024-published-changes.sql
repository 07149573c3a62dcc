-- As shared/migrations/007-published-changes.sql.
alter table api_log replica identity full;
alter table api_log_default replica identity full;
alter table api_calls replica identity full;
alter table api_calls_default replica identity full;
