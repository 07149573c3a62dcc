create table conversations (
  organization_id text collate "C" not null,
  -- created_at is the id's ULID time.
  id text collate "C" not null,
  phone_number_id text collate "C" not null,
  contact_id text collate "C" not null,
  status text collate "C" not null default 'open' check (status in ('open', 'resolved', 'pending')),
  assigned_to text,
  unread_count int not null default 0 check (unread_count >= 0),
  last_message_at timestamptz(3),
  -- The newest inbound message's own time, from which the 24 hours count.
  last_inbound_at timestamptz(3),
  created_at timestamptz(3) not null,
  -- The start of the transaction that changed it last, by the database's clock: what delta sync goes by.
  updated_at timestamptz(3) not null default now(),
  -- Two contacts were found to be one and both had a conversation: the one in which it goes on. This one stays readable.
  merged_into text collate "C",
  primary key (organization_id, id),
  foreign key (organization_id, contact_id) references contacts
) with (autovacuum_vacuum_scale_factor = 0.05);
-- One conversation that goes on for each contact, and the way to all of a contact's.
create unique index conversations_of_contact on conversations
  (contact_id, organization_id, (case when merged_into is null then '' else id end));
-- The list: newest message first, those without one last.
create index conversations_newest on conversations
  (phone_number_id, organization_id, (coalesce(last_message_at, '-infinity'::timestamptz)), id);
create index conversations_newest_by_status on conversations
  (phone_number_id, organization_id, status, (coalesce(last_message_at, '-infinity'::timestamptz)), id);
