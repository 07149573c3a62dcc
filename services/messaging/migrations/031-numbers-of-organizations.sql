-- A number is of one organization. Who takes the two for independent expects one message of a number, whatever it has, and reads all of them
-- by the primary key, where another index has the one that is asked for. Not of an empty table: it would count as one that stays so.
create statistics messages_numbers (dependencies) on organization_id, phone_number_id from messages;
do $$
begin
  if exists (select from messages) then
    analyze messages (organization_id, phone_number_id);
  end if;
end
$$;
