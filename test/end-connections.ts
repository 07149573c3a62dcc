import type { Sql } from '@app/shared/database/database.ts'

/** Ends four of the service's connections; whoever had them gets others. */
export const endConnections = (sql: Sql): Promise<unknown> => sql`
  select pg_terminate_backend(pid) from (
    select pid from pg_stat_activity
    where datname = current_database() and usename = current_user and pid <> pg_backend_pid()
    order by random() limit 4
  ) those
`
