import { createTestDatabase, type TestDatabase } from '@app/test/database.ts'
import { sessionWithClock } from '@app/test/wrong-clock.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { momentOf } from './moment-of.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase('messaging')
})
afterAll(() => database.drop())

test.each([0, -90_000, 90_000])('a moment is told by the clock of the database, which is %i ms ahead', async (byMs) => {
  const sql = await sessionWithClock(database.sql, byMs)
  const at = performance.now()
  const latest = Date.now() + byMs
  await sql`select pg_sleep(0.2)`
  const moment = (await momentOf(sql, at)).getTime()
  expect(moment).toBeLessThanOrEqual(latest)
  expect(moment).toBeGreaterThan(latest - 5_000)
})
