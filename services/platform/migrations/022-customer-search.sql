-- The pieces of three characters in a text. As in directory (007-contact-search.sql), but with the spaces: a search may begin in
-- the middle of a word, and end in another.
create function grams(of_text text) returns text[]
immutable parallel safe
return (select coalesce(array_agg(substr(of_text, n, 3)), '{}') from generate_series(1, length(of_text) - 2) n);

-- Together with their organization, so that what another one's customers are called costs nothing.
create function customer_grams(organization_id text, of_text text) returns text[]
immutable parallel safe
return array_append(grams(lower(of_text)), organization_id);

create index customers_search on customers using gin (customer_grams(organization_id, name || ' ' || coalesce(email, '')));
