-- Who wanted no marketing messages when their contact was deleted, by a hash of each name: nothing personal is kept, and
-- the wish is, should they come back.
create table remembered_stops (
  organization_id text collate "C" not null,
  phone_number_id text collate "C" not null,
  name_hash bytea not null,
  at timestamptz(3) not null,
  primary key (organization_id, phone_number_id, name_hash)
);
