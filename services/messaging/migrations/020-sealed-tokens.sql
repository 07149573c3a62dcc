-- Which key sealed a token stands before its first dot (shared/sealed-secrets.ts).
create index senders_sealed on senders (split_part(sealed_token, '.', 1), organization_id, phone_number_id)
  where sealed_token is not null;
