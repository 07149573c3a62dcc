import type { Fragment, Sql, TransactionSql } from '../database/database.ts'

/**
 * A group's pace: table (grp text primary key, tat timestamptz not null, interval_ms float8 not null, open_for text), one token
 * a claimed lane. `open_for` is the tenant that the group is of; null: it has none, and counts as one.
 */
export interface Pace {
  table: string
  /** How far ahead of the pace a group may run. */
  burstMs: number
}

/** How many tokens a row of the table has now. */
export const tokensOf = (sql: Sql | TransactionSql, burstMs: number): Fragment => sql`
  floor((${burstMs} - extract(epoch from greatest(tat, now()) - now()) * 1000) / interval_ms)::int
`

/** Part of a statement: takes tokens, as `grp` and `count` of each row of `claimed`. */
export const charging = (sql: Sql | TransactionSql, table: string, claimed: Fragment): Fragment => sql`
  update ${sql(table)} as p set tat = greatest(p.tat, now()) + c.count * p.interval_ms * interval '1 ms'
  from (${claimed}) c where p.grp = c.grp
`
