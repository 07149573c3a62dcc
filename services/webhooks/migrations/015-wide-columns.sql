-- As in shared/migrations/005-wide-columns.sql.
alter table events alter column payload set statistics 0, alter column trace set statistics 0;
alter table event_backlog alter column head set statistics 0, alter column payload set statistics 0;
alter table attempts alter column response_body_snippet set statistics 0, alter column error_message set statistics 0;
