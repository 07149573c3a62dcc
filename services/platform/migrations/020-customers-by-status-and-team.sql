-- Each filter of the list, and both together, in constant time, whatever share of the customers it finds. Ordered in this
-- collation a list takes none but these: the primary key promises as much where many have a status, and then reads all that are
-- newer when those are the oldest.
create index customers_by_status on customers (organization_id, status, id collate "POSIX");
create index customers_by_team on customers (organization_id, team_id, id collate "POSIX");
create index customers_by_team_and_status on customers (organization_id, team_id, status, id collate "POSIX");
