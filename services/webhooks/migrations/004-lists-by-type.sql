-- The types of which an organization has deliveries. A list without a type is made of the lists of these, so that one index
-- serves both: an index less on deliveries is 6 µs less for each.
create table delivered_types (
  organization_id text not null,
  event_type text not null,
  primary key (organization_id, event_type)
);
insert into delivered_types (organization_id, event_type) select distinct organization_id, event_type from deliveries;
drop index deliveries_list;
drop index deliveries_by_subscription;
