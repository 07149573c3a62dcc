-- The open deliveries of a rare type that have failed before are found without reading all others. Only those pay for it: what
-- is delivered at the first attempt never stands in this index.
update due_deliveries o set event_type = (select event_type from deliveries where id = o.id limit 1) where event_type is null;

-- Instances of the version before write none while they are replaced.
create function type_due_delivery() returns trigger language plpgsql as $$
begin
  new.event_type := (select event_type from deliveries where id = new.id limit 1);
  return new;
end
$$;
create trigger type_due_delivery before insert on due_deliveries for each row
  when (new.event_type is null) execute function type_due_delivery();

create index due_deliveries_failed_by_type on due_deliveries (organization_id, event_type, id collate "POSIX") where tried;
