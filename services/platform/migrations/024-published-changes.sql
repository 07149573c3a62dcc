-- As shared/migrations/007-published-changes.sql.
do $$
declare one regclass;
begin
  for one in
    select name::regclass from unnest(array['api_log', 'api_calls']) name
    union all select inhrelid from pg_inherits where inhparent = any(array['api_log', 'api_calls']::regclass[])
  loop
    execute format('alter table %s replica identity full', one);
  end loop;
end $$;
