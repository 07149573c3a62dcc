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

/**
 * Until when the tokens of a row of the table are taken. No group ever rests for an hour: a time that is further ahead was written before
 * the clock was put back, and does not count; else the group would wait for just as long.
 */
export const takenUntil = (sql: Sql | TransactionSql): Fragment => sql`
  greatest(case when tat < now() + interval '1 hour' then tat end, now())
`

/** How many tokens a row of the table has now. */
export const tokensOf = (sql: Sql | TransactionSql, burstMs: number): Fragment => sql`
  floor((${burstMs} - extract(epoch from ${takenUntil(sql)} - now()) * 1000) / interval_ms)::int
`

/** From when on a row of the table has tokens again; null: it has some now. */
export const restsUntil = (sql: Sql | TransactionSql, burstMs: number): Fragment => sql`
  case when ${takenUntil(sql)} > now() + ${burstMs} * interval '1 ms' then tat - ${burstMs} * interval '1 ms' end
`

/** Part of a statement: takes tokens, as `grp` and `count` of each row of `claimed`. */
export const charging = (sql: Sql | TransactionSql, table: string, claimed: Fragment): Fragment => sql`
  update ${sql(table)} as p set tat = ${takenUntil(sql)} + c.count * p.interval_ms * interval '1 ms'
  from (${claimed}) c where p.grp = c.grp
`
