-- As in shared/migrations/005-wide-columns.sql.
alter table contacts alter column metadata set statistics 0;
alter table inbounds alter column labels set statistics 0;
alter table remembered_stops alter column name_hash set statistics 0;
