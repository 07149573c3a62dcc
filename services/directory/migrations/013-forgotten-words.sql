-- When the address book removed the number, or its contact was deleted: the word is kept for 8 days more, for callbacks that come
-- late, and then the number is forgotten.
alter table synced_contacts add column forgotten_at timestamptz;
update synced_contacts s set forgotten_at = now()
where s.action = 'remove'
  or not exists (
    select from contacts c where c.organization_id = s.organization_id and c.id = s.contact_id and c.deleted_at is null
  )
  and not exists (
    select from identities i
    where i.organization_id = s.organization_id and i.phone_number_id = s.phone_number_id
      and (i.kind, i.value) in (('phone', '+' || s.wa_id), ('wa_id', s.wa_id))
  );
create index synced_contacts_forgotten on synced_contacts (forgotten_at) where forgotten_at is not null;
create index synced_contacts_of_contact on synced_contacts (contact_id, organization_id) where contact_id is not null;
