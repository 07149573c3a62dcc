import { testService, type TestService } from '@app/test/service.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openDatabase, type Sql } from '../database/database.ts'
import { restoreStream } from './provision.ts'
import { redrive, refillLostStream } from './refill.ts'

let it: TestService
/** As a service's, with a tenth of the time for a statement. */
let sql: Sql
beforeAll(async () => {
  it = await testService('messaging')
  sql = openDatabase(it.databaseUrl, 'messaging', { max: 1 })
  await sql`set statement_timeout = 300`
})
afterAll(async () => {
  await sql.end()
  await it.close()
})

const [old, young] = ['4 hours', '1 hour']

async function publishedBefore(age: string, count: number) {
  await it.sql.begin(async (tx) => {
    await tx`set local statement_timeout = 0`
    await tx`
      insert into outbox (id, subject, headers, payload, created_at, published_at)
      select ${age} || ':' || n, 'event.test.happened', '{}', convert_to(repeat('x', 500), 'UTF8'),
        now() - ${age}::interval, now()
      from generate_series(1, ${count}::int) n
    `
  })
}

const waiting = async () => {
  const rows = await it.sql<{ age: string; count: number }[]>`
    select split_part(id, ':', 1) as age, count(*)::int from outbox where published_at is null group by 1
  `
  return Object.fromEntries(rows.map(({ age, count }) => [age, count]))
}

test('what a stream lost that is as old as before, but shorter, is published again, once', async () => {
  const { created } = await restoreStream(it.eventBus.nc, it.streamReplicas)
  await publishedBefore(young, 2)
  expect(await refillLostStream(it)).toBe(created)
  expect(await waiting()).toEqual({})
  await it.sql`update relay_position set last_seq = last_seq + 1`
  await refillLostStream(it)
  expect(await waiting()).toEqual({ [young]: 2 })
  await it.sql`update outbox set published_at = now()`
  await refillLostStream(it)
  expect(await waiting()).toEqual({})
  await it.sql`truncate outbox`
})

test('more events than one statement could take wait again, those of before do not', async () => {
  await publishedBefore(old, 20_000)
  await publishedBefore(young, 100_000)
  const since = new Date(Date.now() - 2 * 3_600_000)
  const atOnce = sql`update outbox set published_at = null where created_at >= ${since}`
  await expect(atOnce).rejects.toThrow('statement timeout')
  expect(await redrive({ ...it, sql }, since)).toBe(100_000)
  expect(await waiting()).toEqual({ [young]: 100_000 })
})

test('again, it finds nothing that does not wait', async () => {
  expect(await redrive({ ...it, sql }, new Date(Date.now() - 2 * 3_600_000))).toBe(0)
})
