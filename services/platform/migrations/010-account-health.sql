-- When a number's state is asked for next, and who asks: one instance at a time, until its lease ends.
alter table accounts
  add column poll_at timestamptz(3) not null default now() + interval '1 minute',
  add column poll_held_until timestamptz(3) not null default '-infinity',
  add column poll_failures int not null default 0,
  -- The platform reported it worse than it shows it: until then no answer lifts the status.
  add column reported_until timestamptz(3),
  -- The business took the number from our app: only its return lifts that.
  add column removed boolean not null default false;

create index accounts_poll on accounts (poll_at) where attached and sealed_token is not null;
create index accounts_business_account on accounts (business_account_id) where attached;
