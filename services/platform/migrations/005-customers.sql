-- End-customers of an organization.
create table customers (
  organization_id text collate "C" not null references organizations,
  id text collate "C" not null,
  team_id text collate "C" not null,
  name text not null,
  email text,
  metadata jsonb not null,
  status text not null check (status in ('pending', 'active', 'suspended', 'archived')),
  -- When its first number was connected; null while it never had one.
  first_number_at timestamptz(3),
  archived_at timestamptz(3),
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  primary key (organization_id, id),
  -- Over all organizations: an administrator names a customer by its id alone.
  constraint customers_id unique (id),
  constraint customers_team foreign key (organization_id, team_id) references teams (organization_id, id),
  constraint customers_archived check ((status = 'archived') = (archived_at is not null))
);

alter table accounts add constraint accounts_customer
  foreign key (organization_id, customer_id) references customers (organization_id, id);
create index accounts_of_customer on accounts (organization_id, customer_id) where customer_id is not null;
