import { testService, type TestService } from '@app/test/service.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { firstIdAt, newIdAt } from '../values/ids.ts'
import { keepPartitions } from './partitions.ts'

let app: TestService
beforeAll(async () => {
  app = await testService('messaging')
  await app.sql`create table by_time (at timestamptz not null, word text) partition by range (at)`
  await app.sql`create table by_time_default partition of by_time default`
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
