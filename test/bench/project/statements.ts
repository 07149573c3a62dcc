import type { Sql } from 'postgres'
import type { Statement } from '../statements.ts'
import type { Project } from './project.ts'

const shownCharacters = 150

/** Loads the extension pg_stat_statements, for which the server must start anew; false when the server has none. */
export async function watchStatements(project: Project): Promise<boolean> {
  const there = await project.sql()`select from pg_available_extensions where name = 'pg_stat_statements'`
  if (there.length === 0) return false
  await project.sql()`alter system set shared_preload_libraries = 'pg_stat_statements'`
  await project.restart()
  await project.sql()`create extension if not exists pg_stat_statements`
  await project.sql()`alter system set pg_stat_statements.track_planning = on`
  await project.sql()`select pg_reload_conf()`
  return true
}

/** What each statement of the services has cost since the server is watched; the bench's own are not among them. */
export const readStatements = (sql: Sql): Promise<Statement[]> => sql<Statement[]>`
  select role || ': ' || left(query, ${shownCharacters}) as name, sum(calls)::int as calls,
    sum(total_plan_time + total_exec_time)::float8 as "totalMs", sum(total_plan_time)::float8 as "planMs", sum(rows)::int as rows
  from (
    select r.rolname as role, trim(regexp_replace(s.query, '\\s+', ' ', 'g')) as query, s.calls, s.total_plan_time, s.total_exec_time, s.rows
    from pg_stat_statements s join pg_roles r on r.oid = s.userid where r.rolname <> current_user
  ) s
  group by 1 order by 3 desc
`
