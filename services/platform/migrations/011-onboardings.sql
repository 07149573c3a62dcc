-- One walk through the platform's dialog, begun from a setup link. A link may have several, of which one consumes it.
create table onboardings (
  organization_id text collate "C" not null,
  -- sha256 of the state that goes through the dialog.
  id text collate "C" not null,
  setup_link_id text collate "C" not null,
  step text not null check (step in ('begun', 'exchanging', 'exchanged', 'connected', 'done', 'failed')),
  -- What the dialog told.
  event text check (event in ('number', 'account_only', 'business_app')),
  business_account_id text,
  phone_number_id text,
  -- What the code bought, sealed for `onboarding:<id>`; null again when the account has it.
  sealed_token text,
  account_id text collate "C",
  -- Who works on it, until then.
  held_until timestamptz(3) not null default '-infinity',
  -- When it goes on by itself, should the browser be gone.
  due_at timestamptz(3),
  attempts int not null default 0,
  last_error text,
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  primary key (organization_id, id)
);

create index onboardings_due on onboardings (due_at) where due_at is not null;
create index onboardings_link on onboardings (organization_id, setup_link_id);
