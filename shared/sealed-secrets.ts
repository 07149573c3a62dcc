import { z } from 'zod'
import { type Handler, rpc } from './contract.ts'
import type { Sql } from './database.ts'
import type { KeyRing } from './environment.ts'
import { mostCounted } from './metrics/database-readings.ts'
import { type Gauges, readings } from './metrics/readings.ts'
import { Problem } from './problem.ts'
import { seal, unseal } from './seal.ts'
import type { DataService } from './service.ts'

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

/** Current: new secrets are sealed with it. Old: it opens. Missing: nothing opens them. */
const states = ['current', 'old', 'missing'] as const

const SealedCount = z.object({
  table: z.string(),
  key: z.string(),
  state: z.enum(states),
  /** At most 10,000 are counted. */
  count: z.int(),
})
export type SealedCount = z.output<typeof SealedCount>

/** The row at which a batch ended. */
const Place = z.object({ table: z.string(), key: z.string(), row: z.array(z.string()) })
export type Place = z.output<typeof Place>

type Sealing = 'messaging' | 'platform' | 'webhooks'

export const countSecretsOf = <S extends Sealing>(service: S) =>
  rpc({
    subject: `rpc.${service}.count-secrets` as const,
    summary: `Count what ${service} has sealed, by table and key`,
    answer: z.object({ counts: z.array(SealedCount) }),
  })

/** One batch: asked again and again, with the `next` of the answer before, until that is null. */
export const resealSecretsOf = <S extends Sealing>(service: S) =>
  rpc({
    subject: `rpc.${service}.reseal-secrets` as const,
    summary: `Seal again, under the current key, what older keys sealed for ${service}`,
    /** `current`: the key that the asker means; an instance with another one refuses. */
    body: z.object({ current: z.string(), after: Place.nullable() }),
    answer: z.object({ resealed: z.int(), unopened: z.int(), next: Place.nullable() }),
  })

type Count = ReturnType<typeof countSecretsOf>
type Reseal = ReturnType<typeof resealSecretsOf>
type App = Pick<DataService, 'sql' | 'log' | 'probes'> & { sealKeys: KeyRing }

const gauges: Gauges = {
  svc_sealed_secrets: {
    help: `Stored secrets, by table, key and whether that is the current one, an old one or missing; counted up to ${mostCounted}.`,
    labelNames: ['table', 'key', 'state'],
  },
}

/** Tells by which keys a service's secrets are sealed: as a gauge, in the log when a key is missing, and to the operator. */
export function watchSecrets(
  { sql, log, probes, sealKeys }: App,
  columns: SealedColumn[],
): { countSecrets: Handler<App, Count>; resealSecrets: Handler<App, Reseal> } {
  const count = () => countSealed(sql, sealKeys, columns)
  readings(probes.metrics, 'secrets', gauges, async () =>
    (await count()).map(({ count: value, ...labels }) => ({ gauge: 'svc_sealed_secrets', labels, value })),
  )
  const tell = async () => {
    for (const { state, ...found } of await count()) {
      if (state === 'missing') log.error(found, 'stored secrets need a key that is not in SEAL_KEYS')
    }
  }
  void tell().catch((err: unknown) => log.warn({ err }, 'count secrets'))
  return {
    countSecrets: async () => ({ counts: await count() }),
    async resealSecrets(_, { body: { current, after } }) {
      if (current !== sealKeys.current) {
        throw new Problem('invalid_field_value', {
          param: 'current',
          message: `An instance seals with the key "${sealKeys.current}", not with "${current}".`,
        })
      }
      return resealBatch({ sql, log, sealKeys }, columns, after)
    },
  }
}

async function countSealed(sql: Sql, keys: KeyRing, columns: SealedColumn[]): Promise<SealedCount[]> {
  const counted = await Promise.all(columns.map((column) => countColumn(sql, column)))
  return counted.flatMap((rows, n) =>
    rows.map(({ key, count }) => ({ table: columns[n]?.table ?? '', key, state: stateOf(keys, key), count })),
  )
}

const stateOf = ({ current, byId }: KeyRing, key: string) =>
  key === current ? 'current' : byId.has(key) ? 'old' : 'missing'

/** Skips from key to key in the index. */
const countColumn = (sql: Sql, { table, text, where }: SealedColumn) => {
  const from = sql`from ${sql(table)} where ${sql.unsafe(where)}`
  const key = sql`split_part(${sql.unsafe(text)}, '.', 1)`
  return sql<{ key: string; count: number }[]>`
    with recursive k as (
      (select ${key} as key ${from} order by 1 limit 1)
      union all
      select n.key from k cross join lateral (select ${key} as key ${from} and ${key} > k.key order by 1 limit 1) n
    )
    select k.key, (
      select count(*)::int from (select ${from} and ${key} = k.key limit ${mostCounted}) c
    ) as count from k order by 1
  `
}

const batchSize = 200

/**
 * Seals the next secrets of an old key again. Each is written only where the row still holds what was read, so a concurrent
 * change wins; a row that somebody has locked is left for another run. Nothing remembers how far it came but the asker: who
 * begins anew finds what is left.
 */
async function resealBatch(
  { sql, log, sealKeys }: Pick<App, 'sql' | 'log' | 'sealKeys'>,
  columns: SealedColumn[],
  after: Place | null,
) {
  const first = after ? columns.findIndex(({ table }) => table === after.table) : 0
  for (const column of columns.slice(Math.max(0, first))) {
    const place = after?.table === column.table ? after : null
    const found = await countColumn(sql, column)
    const old = found.map(({ key }) => key).filter((key) => stateOf(sealKeys, key) === 'old')
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
function changeOf({ log, sealKeys }: Pick<App, 'log' | 'sealKeys'>, { table, boundTo }: SealedColumn, row: SealedRow) {
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
