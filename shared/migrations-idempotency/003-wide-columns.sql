-- As in shared/migrations/005-wide-columns.sql.
alter table keys alter column answer set statistics 0;
