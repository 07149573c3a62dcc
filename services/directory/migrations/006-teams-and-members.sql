-- The organizations' teams and their members, as platform last said.
create table teams (
  organization_id text collate "C" not null,
  id text collate "C" not null,
  name text not null,
  told_at timestamptz(3) not null,
  primary key (organization_id, id)
);

create table members (
  organization_id text collate "C" not null,
  id text collate "C" not null,
  team_id text collate "C" not null,
  name text not null,
  email text not null,
  told_at timestamptz(3) not null,
  primary key (organization_id, id)
);
