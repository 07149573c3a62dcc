-- Organizations take turns with their replays.
create index replays_in_turn on replays (organization_id, due_at) where finished_at is null;
