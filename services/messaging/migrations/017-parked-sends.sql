-- Sends whose outcome is unknown are few and are counted often. The column changes when one is parked alone, so that the
-- updates of all others stay as cheap as they were.
create index sends_parked on sends (parked_until) where parked_until is not null;
