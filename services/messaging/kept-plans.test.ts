import { createTestDatabase, type TestDatabase } from '@app/test/database.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase('messaging')
})
afterAll(() => database.drop())

/** As webhooks/attempts/kept-plans.test.ts says: a plan of an empty queue is kept while it fills. */
test.each(['sends', 'callback_items', 'media_copies'])(
  'items of %s are looked up by their key, although there were none',
  async (table) => {
    const { admin, sql } = database
    await admin.unsafe(`vacuum (analyze) messaging.${table}`)
    const lines = await sql.unsafe(`explain delete from ${table} where seq = any('{1,2}')`)
    expect(lines.map((line) => String(line['QUERY PLAN'])).join('\n')).toContain(`using ${table}_pkey on ${table}`)
  },
)
