-- Nothing is looked up by these, and to read, unpack and sort them is most of what ANALYZE does. Partitions take it over
-- (shared/database/partitions.ts).
alter table outbox alter column headers set statistics 0, alter column payload set statistics 0;
alter table dead_events alter column headers set statistics 0, alter column payload set statistics 0;
