-- They are counted often, among those that only failed for a while.
create index dead_events_dead on dead_events (consumer) where dead;
