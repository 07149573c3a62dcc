import { createTestDatabase, type TestDatabase } from '@app/test/database.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sweepCallbackItems } from './sweep-items.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase('messaging')
})
afterAll(() => database.drop())

test('a part of a callback that nobody takes is kept for 8 days, as the callback may be, and no longer', async () => {
  const { sql } = database
  await sql`
    insert into callback_items (callback_id, lane, kind, item, received_at)
    select n, '106540352242922', 'status', '{}', now() - n * interval '1 day' + interval '1 hour'
    from generate_series(8, 9) n
  `
  expect(await sweepCallbackItems(sql)).toBe(1)
  expect(await sql`select callback_id::int from callback_items`).toEqual([{ callbackId: 8 }])
})
