-- Which key sealed a secret stands before its first dot (shared/sealed-secrets.ts).
create index secrets_sealed on secrets (split_part(sealed, '.', 1), id) where sealed is not null;
