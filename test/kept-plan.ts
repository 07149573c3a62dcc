import type { Sql, TransactionSql } from '@app/shared/database/database.ts'

/** A plan as `explain` tells it, line by line. */
export const planIn = (lines: readonly Record<string, unknown>[]): string =>
  lines.map((line) => String(line['QUERY PLAN'])).join('\n')

/** The plan of the statement that this connection has prepared and that holds all these words; `values` are its parameters in SQL. */
export async function keptPlan(sql: Sql | TransactionSql, words: string[], values: string[] = []): Promise<string> {
  const [kept] = await sql<{ name: string }[]>`
    select name from pg_prepared_statements
    where (select bool_and(strpos(statement, word) > 0) from unnest(${words}::text[]) word) and strpos(statement, 'pg_prepared') = 0
  `
  const given = values.length > 0 ? `(${values.join()})` : ''
  return planIn(await sql.unsafe(`explain execute "${kept?.name ?? ''}" ${given}`))
}
