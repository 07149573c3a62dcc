-- Each filter of the list in constant time, whatever share of the rows it finds. (An index on `failed` alone forbade cheap
-- updates of the status as much as one on all of them does.)
create index messages_by_status on messages (organization_id, phone_number_id, status, id);
drop index messages_failed;
create index messages_inbound on messages (organization_id, phone_number_id, id) where direction = 'inbound';
