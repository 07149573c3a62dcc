-- What the platform takes from the number in a second; null: its usual 80.
alter table accounts add column messages_per_second int;
