-- Templates belong to a business account: every number of it that the organization has sees them.
create table templates (
  organization_id text not null,
  business_account_id text not null,
  id text collate "C" not null,
  name text not null,
  language text not null,
  status text not null check (status in ('pending', 'approved', 'rejected')),
  -- The platform's own word; VANISHED when it no longer lists the template.
  upstream_status text not null,
  category text not null check (category in ('MARKETING', 'UTILITY', 'AUTHENTICATION')),
  components jsonb not null,
  parameter_format text not null check (parameter_format in ('positional', 'named')),
  -- Null until the platform has answered the creation.
  provider_template_id text,
  rejected_reason text,
  quality text,
  -- The lease of a creation whose outcome is not known yet; null once it is.
  held_until timestamptz,
  -- When what stands here was read or heard, by our clock. What was asked before that changes nothing any more.
  known_at timestamptz not null,
  -- The platform's time of the newest callback of each kind; an older one that comes late changes nothing.
  status_at timestamptz not null default '-infinity',
  category_at timestamptz not null default '-infinity',
  quality_at timestamptz not null default '-infinity',
  components_at timestamptz not null default '-infinity',
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  primary key (organization_id, id)
);
create unique index templates_name on templates (organization_id, business_account_id, name, language);
create index templates_list on templates (organization_id, business_account_id, id);
create index templates_list_status on templates (organization_id, business_account_id, status, id);
