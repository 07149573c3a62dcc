-- When one of the names was remembered to have stopped. Volatile: it sees what was committed while the statement that asks waited for names.
create function remembered_stop(of_organization text, of_number text, names json) returns timestamptz
language sql volatile
begin atomic
  select max(r.at)
  from json_to_recordset(names) as i(kind text, value text)
  cross join lateral (
    select at from remembered_stops
    where organization_id = of_organization and phone_number_id = of_number
      and name_hash = sha256(convert_to(i.kind || ':' || i.value, 'UTF8')) limit 1
  ) r;
end;
