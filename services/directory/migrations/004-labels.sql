create table labels (
  organization_id text collate "C" not null,
  -- created_at is the id's ULID time.
  id text collate "C" not null,
  team_id text collate "C" not null,
  name text not null,
  color text not null default 'gray',
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  primary key (organization_id, id)
);
create unique index labels_name on labels (organization_id, team_id, lower(name));

create table contact_labels (
  organization_id text collate "C" not null,
  contact_id text collate "C" not null,
  label_id text collate "C" not null,
  primary key (organization_id, contact_id, label_id),
  foreign key (organization_id, contact_id) references contacts,
  foreign key (organization_id, label_id) references labels on delete cascade
);
create index contact_labels_of_label on contact_labels (label_id, organization_id);

create table conversation_labels (
  organization_id text collate "C" not null,
  conversation_id text collate "C" not null,
  label_id text collate "C" not null,
  primary key (organization_id, conversation_id, label_id),
  foreign key (organization_id, conversation_id) references conversations,
  foreign key (organization_id, label_id) references labels on delete cascade
);
create index conversation_labels_of_label on conversation_labels (label_id, organization_id);
