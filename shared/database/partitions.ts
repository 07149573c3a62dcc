import type { Sql, TransactionSql } from './database.ts'
import { firstIdAt, type Prefix } from '../values/ids.ts'

const dayMs = 24 * 60 * 60 * 1000

export interface Partitions {
  table: string
  /** Partitioned by a time column, or by the range of a ULID column with this prefix. */
  by: 'time' | Prefix
  /** Days of a partition; 1 unless told. What reads all partitions, by their indexes too, takes time for each. */
  days?: number
  /** Days that are kept before today, and what shares a partition with them. */
  keepDays: number
  /** Days before today of which rows may still come; 1 unless told. */
  lateDays?: number
  /** A condition, in SQL: a partition that has such rows stays, however old. */
  open?: string
}

/** Days since 1970: the first, and how many. */
interface Span {
  day: number
  days: number
}

/** Partitions are there this many days ahead, so that a service may be away for a week. */
const aheadDays = 7

/**
 * Makes partitions ahead and drops those whose days are over. Detached plainly, at most a lock time-out (1 s) long: Postgres
 * refuses `concurrently` beside a default partition, and that one must be, so that no insert fails. Rows in it mean that this did not
 * run in time.
 */
export async function keepPartitions(sql: Sql, partitions: Partitions, now = Date.now()): Promise<void> {
  const { table, keepDays, open = 'false' } = partitions
  await makePartitions(sql, partitions, aheadDays, now)
  const oldest = dayAt(now) - keepDays
  for (const span of await spansOf(sql, table)) {
    const name = nameOf(table, span)
    if (span.day + span.days <= oldest && !(await isOpen(sql, name, open))) await detach(sql, table, name)
  }
  for (const name of await unnamedOf(sql, table)) await sql`alter table ${sql(name)} replica identity full`
}

/** When the oldest day begins of which rows are kept: one whose days are over stays while somebody, such as a backup, holds its table. */
export async function keptSince(sql: Sql, { table, keepDays }: Partitions): Promise<Date> {
  const days = (await spansOf(sql, table)).map(({ day }) => day)
  return new Date(Math.min(dayAt(Date.now()) - keepDays, ...days) * dayMs)
}

async function spansOf(sql: Sql | TransactionSql, table: string) {
  const existing = await sql<{ name: string }[]>`
    select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
    where i.inhparent = ${table}::regclass
  `
  return existing.flatMap(({ name }) => spanOf(table, name) ?? [])
}

/** Those of the days of which rows may still come, of today, and of so many ahead. Made apart and attached: writers do not wait. */
export async function makePartitions(sql: Sql, partitions: Partitions, ahead: number, now = Date.now()): Promise<void> {
  const { days = 1, lateDays = 1 } = partitions
  const today = dayAt(now)
  const first = Math.floor((today - lateDays) / days) * days
  for (let day = first; day <= today + ahead; day += days) await make(sql, partitions, { day, days })
}

const dayAt = (timeMs: number) => Math.floor(timeMs / dayMs)

/** The value with which the day begins. */
function startOf(by: Partitions['by'], day: number) {
  const start = new Date(day * dayMs)
  return by === 'time' ? start.toISOString() : firstIdAt(by, start)
}

const nameOf = (table: string, { day, days }: Span) =>
  `${table}_${new Date(day * dayMs).toISOString().slice(0, 10).replaceAll('-', '')}${days > 1 ? `_${days}d` : ''}`

function spanOf(table: string, name: string): Span | null {
  const [, year, month, date, days = '1'] = /^(\d{4})(\d\d)(\d\d)(?:_(\d+)d)?$/.exec(name.slice(table.length + 1)) ?? []
  if (year === undefined) return null
  return { day: Date.UTC(Number(year), Number(month) - 1, Number(date)) / dayMs, days: Number(days) }
}

const overlap = (one: Span, other: Span) => one.day < other.day + other.days && other.day < one.day + one.days

/** Where there are some of its days already, by themselves as they were made before, the others are made so as well. */
async function make(sql: Sql, partitions: Partitions, span: Span) {
  const { table } = partitions
  await sql.begin(async (tx) => {
    // By its number: each service has an outbox, and none is to wait for another's.
    await tx`select pg_advisory_xact_lock(hashtext('partitions ' || ${table}::regclass::oid))`
    const there = (await spansOf(tx, table)).filter((other) => overlap(other, span))
    if (there.length === 0) return attach(tx, partitions, span)
    for (let day = span.day; day < span.day + span.days; day++) {
      const only = { day, days: 1 }
      if (!there.some((other) => overlap(other, only))) await attach(tx, partitions, only)
    }
  })
}

/** Rows that came before their partition was there wait in the default one; they move, or the attachment would be refused. */
async function attach(tx: TransactionSql, { table, by }: Partitions, span: Span) {
  const name = nameOf(table, span)
  const [from, to] = [startOf(by, span.day), startOf(by, span.day + span.days)] as const
  const [row] = await tx<{ column: string }[]>`
    select substring(pg_get_partkeydef(${table}::regclass) from 'RANGE \\((\\w+)') as column
  `
  if (!row) throw new Error(`${table} has no partitions`)
  await tx`create table ${tx(name)} (like ${tx(table)} including defaults including constraints)`
  await takeOver(tx, table, name)
  await tx`
    with moved as (
      delete from ${tx(`${table}_default`)} where ${tx(row.column)} >= ${from} and ${tx(row.column)} < ${to} returning *
    )
    insert into ${tx(name)} select * from moved
  `
  await tx.unsafe(`alter table ${table} attach partition ${name} for values from ('${from}') to ('${to}')`)
}

/** What `like` does not say: of which columns ANALYZE shall read nothing, and by what a row is named to whom changes are published. */
async function takeOver(tx: TransactionSql, table: string, name: string) {
  const columns = await tx<{ name: string }[]>`
    select attname as name from pg_attribute where attrelid = ${table}::regclass and attnum > 0 and not attisdropped and attstattarget = 0
  `
  for (const column of columns) await tx`alter table ${tx(name)} alter column ${tx(column.name)} set statistics 0`
  const [named] = await tx`select from pg_class where oid = ${table}::regclass and relreplident = 'f'`
  if (named) await tx`alter table ${tx(name)} replica identity full`
}

/** Partitions without what their table has: made before it had it, or beside that by a release before. */
async function unnamedOf(sql: Sql, table: string) {
  const rows = await sql<{ name: string }[]>`
    select c.relname as name from pg_class parent join pg_inherits on inhparent = parent.oid join pg_class c on c.oid = inhrelid
    where parent.oid = ${table}::regclass and parent.relreplident = 'f' and c.relreplident <> 'f'
  `
  return rows.map(({ name }) => name)
}

async function isOpen(sql: Sql, name: string, open: string) {
  const rows = await sql.unsafe(`select from ${name} where ${open} limit 1`)
  return rows.length > 0
}

/** One transaction: a table that was detached, and not dropped, would be found by nobody any more. */
async function detach(sql: Sql, table: string, name: string) {
  await sql.begin(async (tx) => {
    await tx.unsafe(`alter table ${table} detach partition ${name}`)
    await tx.unsafe(`drop table ${name}`)
  })
}
