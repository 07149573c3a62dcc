-- Changes of identity that were made, so that the same one again changes nothing, though its names may be another person's
-- by now. Swept after 8 days: callbacks are kept, and driven again, for 7.
create table identity_changes (
  organization_id text collate "C" not null,
  phone_number_id text collate "C" not null,
  id text collate "C" not null,
  contact_id text collate "C" not null,
  changed_at timestamptz not null default now(),
  primary key (organization_id, phone_number_id, id)
);
create index identity_changes_age on identity_changes (changed_at);

-- The last word of a phone app's address book on each number: an older one that comes late changes nothing.
create table synced_contacts (
  organization_id text collate "C" not null,
  phone_number_id text collate "C" not null,
  wa_id text collate "C" not null,
  action text not null check (action in ('add', 'remove')),
  at timestamptz(3) not null,
  -- The contact that was made of it; any other is not the address book's to remove.
  contact_id text collate "C",
  primary key (organization_id, phone_number_id, wa_id)
);
