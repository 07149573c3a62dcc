-- The type of a dead delivery, so that the dead ones of a rare type are found without reading all others.
alter table dead_deliveries add column event_type text;
update dead_deliveries x set event_type = (select event_type from deliveries where id = x.id limit 1);

-- Instances of the version before write none while they are replaced.
create function type_dead_delivery() returns trigger language plpgsql as $$
begin
  new.event_type := (select event_type from deliveries where id = new.id limit 1);
  return new;
end
$$;
create trigger type_dead_delivery before insert on dead_deliveries for each row
  when (new.event_type is null) execute function type_dead_delivery();

-- In the collation of 008: a look-up by id takes the primary key alone.
drop index dead_deliveries_list;
drop index dead_deliveries_by_subscription;
create index dead_deliveries_list on dead_deliveries (organization_id, id collate "POSIX");
create index dead_deliveries_by_type on dead_deliveries (organization_id, event_type, id collate "POSIX");
create index dead_deliveries_by_subscription on dead_deliveries (subscription_id, id collate "POSIX");
