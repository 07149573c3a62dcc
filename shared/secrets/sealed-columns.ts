import type { Sql } from '../database/database.ts'
import type { KeyRing } from '../service/environment.ts'
import { mostCounted } from '../metrics/database-readings.ts'

/** Where sealed secrets stand: `seal` made each for its row. The parts in SQL are the same as in the migration with the index. */
export interface SealedColumn {
  table: string
  /** The columns of the primary key, all of them text. */
  rowKey: string[]
  /** SQL: the sealed text. */
  text: string
  /** SQL: which rows have one. */
  where: string
  /** SQL: takes over the text `mine.after`. */
  set: string
  /** The columns that name what a secret is bound to. */
  boundBy: string[]
  boundTo: (values: string[]) => string
}

/** An ordinary column: text, or null. */
export function sealedColumn(
  column: string,
  { boundBy, ...rest }: Pick<SealedColumn, 'table' | 'rowKey' | 'boundTo'> & { boundBy: string },
): SealedColumn {
  return {
    ...rest,
    text: column,
    where: `${column} is not null`,
    set: `${column} = mine.after`,
    boundBy: [boundBy],
  }
}

const keyOf = (sql: Sql, { text }: SealedColumn) => sql`split_part(${sql.unsafe(text)}, '.', 1)`
const fromSealed = (sql: Sql, { table, where }: SealedColumn) => sql`from ${sql(table)} where ${sql.unsafe(where)}`

/** The keys `k` that have sealed any of them: skips from key to key in the index. */
function eachKey(sql: Sql, column: SealedColumn) {
  const [key, from] = [keyOf(sql, column), fromSealed(sql, column)]
  return sql`recursive k as (
    (select ${key} as key ${from} order by 1 limit 1)
    union all
    select n.key from k cross join lateral (select ${key} as key ${from} and ${key} > k.key order by 1 limit 1) n
  )`
}

/** In their order. */
export async function keysIn(sql: Sql, column: SealedColumn): Promise<string[]> {
  const rows = await sql<{ key: string }[]>`with ${eachKey(sql, column)} select key from k order by 1`
  return rows.map(({ key }) => key)
}

/** How many secrets each key has sealed. */
export const countByKey = (sql: Sql, column: SealedColumn) => sql<{ key: string; count: number }[]>`
  with ${eachKey(sql, column)}
  select k.key, (
    select count(*)::int from (
      select ${fromSealed(sql, column)} and ${keyOf(sql, column)} = k.key limit ${mostCounted}
    ) c
  ) as count from k order by 1
`

/** Current: new secrets are sealed with it. Old: it opens. Missing: nothing opens them. */
export const stateOf = ({ current, byId }: KeyRing, key: string) =>
  key === current ? 'current' : byId.has(key) ? 'old' : 'missing'
