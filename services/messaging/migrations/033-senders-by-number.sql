-- Whose a number was, of whatever organization: asked each time that one is told of.
create index senders_number on senders (phone_number_id, owned_since);
-- What an organization was told last, of whichever number. In another collation, so that a number is looked up by its own keys alone.
create index senders_told on senders (organization_id collate "POSIX", attached, updated_at);
