-- What organizations with a quota have sent in a month (UTC); the others are not counted.
create table monthly_sends (
  organization_id text not null,
  month date not null,
  count bigint not null,
  primary key (organization_id, month)
) with (fillfactor = 50);
