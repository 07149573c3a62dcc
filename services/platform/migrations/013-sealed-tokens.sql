-- Which key sealed a token stands before its first dot (shared/sealed-secrets.ts).
create index accounts_sealed on accounts (split_part(sealed_token, '.', 1), organization_id, id)
  where sealed_token is not null;
create index onboardings_sealed on onboardings (split_part(sealed_token, '.', 1), organization_id, id)
  where sealed_token is not null;
