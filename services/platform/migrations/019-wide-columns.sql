-- As in shared/migrations/005-wide-columns.sql.
alter table organizations alter column settings set statistics 0;
alter table customers alter column metadata set statistics 0;
