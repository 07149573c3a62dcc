-- Files of messages: uploaded, fetched from a link, or copied from the platform.
create table media (
  organization_id text not null,
  id text collate "C" not null,
  phone_number_id text not null,
  source text not null check (source in ('upload', 'link', 'inbound')),
  -- In the address that we hand out; unguessable, and global since the address names nothing else.
  opaque text not null,
  -- Null while an inbound file is being copied, or when that failed.
  file_key text,
  mime_type text not null,
  size bigint,
  sha256 text,
  filename text,
  -- Until then it may be sent.
  expires_at timestamptz(3) not null,
  -- When it is looked at whether a message names it; null: it goes with its messages.
  sweep_at timestamptz,
  created_at timestamptz(3) not null default now(),
  primary key (organization_id, id)
);
create unique index media_opaque on media (opaque);
create unique index media_file on media (file_key) where file_key is not null;
create index media_sweep on media (sweep_at) where sweep_at is not null;

alter table messages add column media_id text;
create index messages_media on messages (organization_id, media_id) where media_id is not null;

-- Keys in the store that no row of media names: files in the making, files to be deleted. Past their time they are.
create table unclaimed_files (
  file_key text primary key,
  due_at timestamptz not null
);
create index unclaimed_files_due on unclaimed_files (due_at);

-- Files that the platform got from us, by number. An id of the platform lives 30 days there.
create table media_uploads (
  organization_id text not null,
  phone_number_id text not null,
  media_id text not null,
  -- Who uploads holds it until then.
  held_until timestamptz not null,
  upstream_id text,
  -- Why the last try failed, for those who ask before `expires_at`.
  failure jsonb,
  expires_at timestamptz,
  primary key (organization_id, phone_number_id, media_id)
);
