import type { Place } from '../contracts/secrets.ts'
import type { Sql } from '../database/database.ts'
import type { KeyRing } from '../service/environment.ts'
import { seal, unseal } from './seal.ts'
import { keysIn, type SealedColumn, stateOf } from './sealed-columns.ts'
import type { DataService } from '../service/service.ts'

type App = Pick<DataService, 'sql' | 'log'> & { sealKeys: KeyRing }

const batchSize = 200

/**
 * Seals the next secrets of an old key again. Each is written only where the row still holds what was read, so a concurrent
 * change wins; a row that somebody has locked is left for another run. Nothing remembers how far it came but the asker: who
 * begins anew finds what is left.
 */
export async function resealBatch({ sql, log, sealKeys }: App, columns: SealedColumn[], after: Place | null) {
  const first = after ? columns.findIndex(({ table }) => table === after.table) : 0
  for (const column of columns.slice(Math.max(0, first))) {
    const place = after?.table === column.table ? after : null
    const old = (await keysIn(sql, column)).filter((key) => stateOf(sealKeys, key) === 'old')
    for (const key of old.toSorted().filter((one) => place === null || one >= place.key)) {
      const rows = await read(sql, column, key, key === place?.key ? place.row : null)
      const last = rows.at(-1)
      if (!last) continue
      const changes = rows.flatMap((row) => changeOf({ log, sealKeys }, column, row) ?? [])
      const resealed = await write(sql, column, changes)
      return {
        resealed,
        unopened: rows.length - changes.length,
        next: { table: column.table, key, row: last.rowKey },
      }
    }
  }
  return { resealed: 0, unopened: 0, next: null }
}

interface SealedRow {
  rowKey: string[]
  boundBy: string[]
  sealed: string
}

/** Those before the place are few: what was sealed again has another key. */
const read = (sql: Sql, { table, rowKey, text, where, boundBy }: SealedColumn, key: string, after: string[] | null) => {
  const rowKeyOf = sql`array[${sql(rowKey)}]`
  return sql<SealedRow[]>`
    select ${rowKeyOf} as row_key, array[${sql(boundBy)}] as bound_by, ${sql.unsafe(text)} as sealed
    from ${sql(table)}
    where ${sql.unsafe(where)} and split_part(${sql.unsafe(text)}, '.', 1) = ${key}
      ${after ? sql`and ${rowKeyOf} > ${after}::text[]` : sql``}
    order by ${sql(rowKey)} limit ${batchSize}
  `
}

/** Nothing for one that was changed or moved: it stays as it is, and is told of. */
function changeOf({ log, sealKeys }: Omit<App, 'sql'>, { table, boundTo }: SealedColumn, row: SealedRow) {
  const bound = boundTo(row.boundBy)
  try {
    return {
      rowKey: row.rowKey,
      before: row.sealed,
      after: seal(sealKeys, unseal(sealKeys, row.sealed, bound), bound),
    }
  } catch (err) {
    log.error({ err, table, row: row.rowKey[0] }, 'a stored secret does not open')
    return null
  }
}

type Change = NonNullable<ReturnType<typeof changeOf>>

/** Waits for no lock, so that it is part of no deadlock. */
async function write(sql: Sql, { table, rowKey, text, where, set }: SealedColumn, changes: Change[]) {
  if (changes.length === 0) return 0
  const given = changes.map(({ rowKey: values, before, after }) => ({
    ...Object.fromEntries(rowKey.map((column, n) => [column, values[n]])),
    before,
    after,
  }))
  const declared = [...rowKey, 'before', 'after'].map((column) => `${column} text`).join(', ')
  const same = rowKey.map((column) => `t.${column} = mine.${column}`).join(' and ')
  const { count } = await sql`
    with mine as materialized (
      select ${sql(rowKey)}, c.after
      from json_to_recordset(${JSON.stringify(given)}::text::json) as c(${sql.unsafe(declared)})
      join ${sql(table)} t using (${sql(rowKey)})
      where ${sql.unsafe(where)} and ${sql.unsafe(text)} = c.before
      order by ${sql(rowKey)} for no key update of t skip locked
    )
    update ${sql(table)} t set ${sql.unsafe(set)} from mine where ${sql.unsafe(same)}
  `
  return count
}
