import { untilSomebodyWaits } from '@app/test/lock-waits.ts'
import { testService, type TestService } from '@app/test/service.ts'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { firstIdAt, newIdAt } from '../values/ids.ts'
import { ownSession } from './own-session.ts'
import { keepPartitions } from './partitions.ts'

let app: TestService
beforeAll(async () => {
  app = await testService('messaging')
  await app.sql`create table by_time (at timestamptz not null, word text) partition by range (at)`
  await app.sql`create table by_time_default partition of by_time default`
  for (const table of ['by_time', 'by_time_default']) await app.sql`alter table ${app.sql(table)} replica identity full`
  await app.sql`create table by_id (id text collate "C" primary key) partition by range (id)`
  await app.sql`create table by_id_default partition of by_id default`
})
afterAll(() => app.close())

const dayMs = 24 * 60 * 60 * 1000
const partitionsOf = async (table: string) => {
  const rows = await app.sql<{ name: string }[]>`
    select inhrelid::regclass::text as name from pg_inherits where inhparent = ${table}::regclass order by 1
  `
  return rows.map(({ name }) => name)
}

test('there is a partition for yesterday, today and a week ahead, and the old ones go with their rows', async () => {
  const now = Date.UTC(2026, 2, 10, 12)
  await keepPartitions(app.sql, { table: 'by_time', by: 'time', keepDays: 3 }, now)
  const names = await partitionsOf('by_time')
  expect(names).toContain('by_time_20260309')
  expect(names).toContain('by_time_20260317')
  expect(names).toHaveLength(10)
  await app.sql`insert into by_time values (${new Date(now)}, 'old')`
  await keepPartitions(app.sql, { table: 'by_time', by: 'time', keepDays: 3 }, now + 3 * dayMs)
  expect(await app.sql`select word from by_time`).toHaveLength(1)
  await keepPartitions(app.sql, { table: 'by_time', by: 'time', keepDays: 3 }, now + 4 * dayMs)
  expect(await app.sql`select word from by_time`).toHaveLength(0)
})

test('rows of a partition that an earlier release has made have a name as those of the others', async () => {
  const now = Date.UTC(2026, 7, 10, 12)
  await app.sql`create table by_time_20260812 partition of by_time for values from ('2026-08-12') to ('2026-08-13')`
  await app.sql`insert into by_time values ('2026-08-12T12:00:00Z', 'new')`
  const change = () => app.sql`update by_time set word = 'changed' where word = 'new'`
  await expect(change()).rejects.toThrow('does not have a replica identity')
  await keepPartitions(app.sql, { table: 'by_time', by: 'time', keepDays: 3 }, now)
  expect((await change()).count).toBe(1)
})

test('rows that came before their partition move into it', async () => {
  const day = new Date(Date.UTC(2026, 4, 1, 12))
  const id = newIdAt('wbd', day)
  await app.sql`insert into by_id values (${id})`
  await keepPartitions(app.sql, { table: 'by_id', by: 'wbd', keepDays: 3 }, day.getTime())
  expect(await app.sql`select tableoid::regclass::text as name from by_id`).toEqual([{ name: 'by_id_20260501' }])
  expect(await app.sql`select id from by_id where id >= ${firstIdAt('wbd', day)}`).toEqual([{ id }])
})

test('a partition that cannot be dropped just now is dropped the next time', async () => {
  const now = Date.UTC(2026, 6, 10, 12)
  const keep = (days: number) =>
    keepPartitions(app.sql, { table: 'by_time', by: 'time', keepDays: 1 }, now + days * dayMs)
  await keep(0)
  await app.sql`create view of_the_ninth as select word from by_time_20260709`
  await expect(keep(2)).rejects.toThrow('depend')
  await app.sql`drop view of_the_ninth`
  await keep(2)
  expect(await app.sql`select to_regclass('by_time_20260709') as name`).toEqual([{ name: null }])
})

const weekly = { table: 'by_week', by: 'wbd', days: 7, keepDays: 3 } as const
/** A day in the middle of a week, as the days since 1970 are counted by sevens. */
const midweek = Math.floor(Date.UTC(2026, 8, 10) / (7 * dayMs)) * 7 * dayMs + 3 * dayMs

async function byWeek() {
  await app.sql`drop table if exists by_week`
  await app.sql`create table by_week (id text collate "C" primary key) partition by range (id)`
  await app.sql`create table by_week_default partition of by_week default`
}

test('days may share a partition, which goes when the last of them is over', async () => {
  await byWeek()
  const id = firstIdAt('wbd', new Date(midweek - 3 * dayMs))
  await app.sql`insert into by_week values (${id})`
  await keepPartitions(app.sql, weekly, midweek)
  await keepPartitions(app.sql, weekly, midweek)
  expect(await partitionsOf('by_week')).toEqual(['by_week_20260910_7d', 'by_week_20260917_7d', 'by_week_default'])
  expect(await app.sql`select tableoid::regclass::text as name from by_week`).toEqual([{ name: 'by_week_20260910_7d' }])
  await keepPartitions(app.sql, weekly, midweek + 6 * dayMs)
  expect(await app.sql`select id from by_week`).toHaveLength(1)
  await keepPartitions(app.sql, weekly, midweek + 7 * dayMs)
  expect(await app.sql`select id from by_week`).toHaveLength(0)
  expect((await partitionsOf('by_week'))[0]).toBe('by_week_20260917_7d')
})

test('a week of which there are days already is made of days', async () => {
  await byWeek()
  const { days, ...daily } = weekly
  await keepPartitions(app.sql, { ...daily, lateDays: 0 }, midweek)
  const made = (await partitionsOf('by_week')).filter((name) => !name.endsWith('default'))
  expect(made).toHaveLength(8)
  await keepPartitions(app.sql, weekly, midweek)
  const names = (await partitionsOf('by_week')).filter((name) => !name.endsWith('default'))
  expect(names).toHaveLength(14)
  expect(names.filter((name) => name.endsWith(`_${days}d`))).toEqual([])
  await keepPartitions(app.sql, weekly, midweek + 7 * dayMs)
  expect((await partitionsOf('by_week')).filter((name) => name.endsWith('_7d'))).toHaveLength(1)
  await app.sql`insert into by_week select ${firstIdAt('wbd', new Date(midweek + 9 * dayMs))}`
  expect(await app.sql`select id from by_week_default`).toHaveLength(0)
})

test('a table of another service that has its name keeps nobody waiting', async () => {
  const patient = ownSession(app.sql, { lock_timeout: '20s', statement_timeout: '20s' })
  const other = ownSession(app.sql, { search_path: 'pg_temp' })
  onTestFinished(async () => void (await Promise.all([patient.end(), other.end()])))
  await other`create temporary table by_time (at timestamptz not null, word text) partition by range (at)`
  await other`create temporary table by_time_default partition of by_time default`
  const partitions = { table: 'by_time', by: 'time', keepDays: 3 } as const
  const now = Date.UTC(2026, 7, 10, 12)
  const giveBack = Promise.withResolvers<void>()
  const holding = app.sql.begin(async (tx) => {
    await tx`lock table by_time in access share mode`
    await giveBack.promise
  })
  const waiting = keepPartitions(patient, partitions, now)
  await untilSomebodyWaits(app.sql)
  await keepPartitions(other, partitions, now)
  giveBack.resolve()
  await holding
  await waiting
})
