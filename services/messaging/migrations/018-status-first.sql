-- A look-up by id must not find this index as good as the primary key: while a table is small, or was when it was analysed,
-- both promise one row, and this one then reads all of a number. With the status first nothing but a status chooses it.
create index messages_of_status on messages (status, organization_id, phone_number_id, id);
drop index messages_by_status;
