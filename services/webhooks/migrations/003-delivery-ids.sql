-- 80 bits of a hash in the alphabet of our ids: five of each of its first 16 bytes. 4 µs.
create function id_characters(hash bytea) returns text language plpgsql immutable strict parallel safe as $$
declare
  characters text := '';
begin
  for n in 0..15 loop
    characters := characters || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + (get_byte(hash, n) & 31), 1);
  end loop;
  return characters;
end
$$;
