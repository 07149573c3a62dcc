-- What a search reads: one space before each word.
create function contact_text(name text, email text, username text, phone_number text) returns text
immutable parallel safe
return ' ' || lower(regexp_replace(trim(coalesce(name, '') || ' ' || coalesce(email, '') || ' '
  || coalesce(username, '') || ' ' || coalesce(phone_number, '')), '\s+', ' ', 'g'));

-- The pieces of three characters in a text, each word with two spaces before it, so that "  a" is in all that have a word
-- with a. Postgres' own pg_trgm does the same, but is not there on every server.
create function grams(of_text text) returns text[]
immutable parallel safe
return (
  select coalesce(array_agg(substr(padded, n, 3)), '{}')
  from (select replace(of_text, ' ', '  ') as padded) t, generate_series(1, length(padded) - 2) n
  where substr(padded, n + 2, 1) <> ' '
);

-- Together with their number, so that what another number's contacts are called costs nothing.
create function contact_grams(phone_number_id text, of_text text) returns text[]
immutable parallel safe
return array_append(grams(of_text), '#' || phone_number_id);

create index contacts_search on contacts
  using gin (contact_grams(phone_number_id, contact_text(name, email, username, phone_number)))
  where deleted_at is null;
