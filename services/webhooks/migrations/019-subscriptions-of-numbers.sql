-- Who gets the events of a number: the subscriptions that name it, and those of its organization that name none. Each in a way of its own, so
-- that no other index serves, and no list of a thousand numbers is gone through.
create index subscriptions_of_number on subscriptions using gin (phone_number_ids) with (fastupdate = off);
create index subscriptions_of_all_numbers on subscriptions
  ((case when phone_number_ids is null or phone_number_ids = '{}' then organization_id end));
