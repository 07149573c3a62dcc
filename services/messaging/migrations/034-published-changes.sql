-- As shared/migrations/007-published-changes.sql.
do $$
declare one regclass;
begin
  for one in select 'callbacks'::regclass union all select inhrelid from pg_inherits where inhparent = 'callbacks'::regclass loop
    execute format('alter table %s replica identity full', one);
  end loop;
end $$;
