create table contacts (
  organization_id text collate "C" not null,
  -- created_at is the id's ULID time.
  id text collate "C" not null,
  phone_number_id text collate "C" not null,
  -- E.164, as first given; null for a contact known by bsuid alone.
  phone_number text,
  -- The number as the platform writes it in callbacks (may differ), digits alone.
  wa_id text,
  bsuid text,
  parent_bsuid text,
  username text,
  name text,
  email text,
  metadata jsonb,
  -- The person's last word on marketing messages.
  marketing_preference text check (marketing_preference in ('stop', 'resume')),
  marketing_preference_at timestamptz(3),
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  deleted_at timestamptz(3),
  -- The contact that this one was found to be.
  merged_into text collate "C",
  primary key (organization_id, id)
);
-- The list, newest first. Not led by the organization: to the planner all indexes of a small table that are look the same,
-- and it keeps the plan that it makes then while the table grows.
create index contacts_newest on contacts (phone_number_id, organization_id, created_at, id) where deleted_at is null;

-- What a contact is known by. The primary key decides who a name belongs to; rows of a deleted contact are deleted.
create table identities (
  organization_id text collate "C" not null,
  phone_number_id text collate "C" not null,
  kind text collate "C" not null check (kind in ('phone', 'wa_id', 'bsuid')),
  value text collate "C" not null,
  contact_id text collate "C" not null,
  primary key (organization_id, phone_number_id, kind, value),
  constraint identities_contact foreign key (organization_id, contact_id) references contacts
);
create index identities_of_contact on identities (contact_id, organization_id);
