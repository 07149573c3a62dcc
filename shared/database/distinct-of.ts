import type { Fragment, Sql } from './database.ts'

/** The values of a column, as `id`, by skipping from one to the next in an index that begins with it, however many rows have each. A `limit` may follow. */
export const distinctOf = (sql: Sql, table: string, column: string): Fragment => sql`
  with recursive o as (
    (select ${sql(column)} as id from ${sql(table)} order by 1 limit 1)
    union all
    select n.id from o cross join lateral (
      select ${sql(column)} as id from ${sql(table)} where ${sql(column)} > o.id order by 1 limit 1
    ) n
  )
  select id from o
`
