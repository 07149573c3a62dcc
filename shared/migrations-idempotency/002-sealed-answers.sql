-- Answers that are sealed are few: they are counted, and sealed again under a new key (shared/sealed-secrets.ts). The index
-- names no column that changes when any other answer is stored, so that those updates stay as cheap as they were.
create index keys_sealed on keys (organization_id, key) where sealed;
