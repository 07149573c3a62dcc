import type { Sql } from 'postgres'
import type { Project } from './project.ts'

// Which SQL statements cost most, by the extension pg_stat_statements, where the server has it.

const shown = 20
const shownCharacters = 150

/** Loads the extension, for which the server must start anew; false when there is none. */
export async function watchStatements(project: Project): Promise<boolean> {
  const there = await project.sql()`select from pg_available_extensions where name = 'pg_stat_statements'`
  if (there.length === 0) return false
  await project.sql()`alter system set shared_preload_libraries = 'pg_stat_statements'`
  await project.restart()
  await project.sql()`create extension if not exists pg_stat_statements`
  return true
}

export const forgetStatements = (sql: Sql) => sql`select pg_stat_statements_reset()`

interface Cost {
  role: string
  calls: number
  totalMs: number
  meanMs: number
  rows: number
  query: string
}

/** The statements on which the server has spent most, as lines; shares are of the time of all statements. */
export async function statementCosts(sql: Sql): Promise<string[]> {
  const costs = await sql<Cost[]>`
    select r.rolname as role, s.calls::int, s.total_exec_time as "totalMs", s.mean_exec_time as "meanMs", s.rows::int,
      regexp_replace(s.query, '\\s+', ' ', 'g') as query
    from pg_stat_statements s join pg_roles r on r.oid = s.userid
    order by s.total_exec_time desc
  `
  const allMs = costs.reduce((sum, { totalMs }) => sum + totalMs, 0)
  const lines = costs.slice(0, shown).map(({ role, calls, totalMs, meanMs, rows, query }) => {
    const numbers = [
      `${((100 * totalMs) / allMs).toFixed(1)} %`.padStart(8),
      `${calls} calls`.padStart(14),
      `${meanMs.toFixed(2)} ms`.padStart(10),
      `${(rows / calls).toFixed(1)} rows`.padStart(12),
    ]
    return `${numbers.join(' ')}  ${role}: ${query.trim().slice(0, shownCharacters)}`
  })
  return [`SQL: ${(allMs / 1000).toFixed(1)} s in statements`, ...lines]
}
