-- The accept that claimed the lane last: a statement tells by it which lanes it has claimed itself.
alter table send_lanes add column holder bigint;
-- The organization whose sends from this number may begin in the statement that accepts them; null while it may not send.
-- Changed with every change of the sender, so that a statement that began before sees it when it locks the row.
alter table pace add column open_for text;
update pace set open_for = (
  select organization_id from senders where phone_number_id = grp and attached and refusal is null
);
