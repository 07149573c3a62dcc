-- Each row is changed once before it goes, so there is room on its page for its next version, and no index is touched:
-- measured, an attempt begins for 9 µs instead of 25.
alter table due_deliveries set (fillfactor = 45);

-- A table that was empty when it was vacuumed is expected to be empty. Then any index that holds the id will do to look one
-- up, and this one was read from end to end for each: the plan is kept while the table fills. In another collation, which
-- sorts alike, the id is of use for lists alone.
drop index due_deliveries_list;
create index due_deliveries_list on due_deliveries (organization_id, tried, id collate "POSIX");
