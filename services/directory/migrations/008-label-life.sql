-- A deleted label is gone at once; what it was attached to is detached afterwards, some at a time, and then its row goes.
alter table labels add column deleted_at timestamptz(3);
drop index labels_name;
create unique index labels_name on labels (organization_id, team_id, lower(name)) where deleted_at is null;
create index labels_newest on labels (organization_id, created_at, id) where deleted_at is null;
create index labels_newest_of_team on labels (team_id, organization_id, created_at, id) where deleted_at is null;
create index labels_deleted on labels (deleted_at) where deleted_at is not null;

-- The number of the contact, so that its contacts with a label are a range: newest last, as their ids are.
alter table contact_labels add column phone_number_id text collate "C";
update contact_labels l set phone_number_id = c.phone_number_id from contacts c
where c.organization_id = l.organization_id and c.id = l.contact_id;
alter table contact_labels alter column phone_number_id set not null;
drop index contact_labels_of_label;
create index contact_labels_of_label on contact_labels (label_id, phone_number_id, contact_id);
