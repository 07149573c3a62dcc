import { createTestDatabase, type TestDatabase } from '@app/test/database.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { texts } from './texts.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase('messaging')
})
afterAll(() => database.drop())

const asRead = async (all: (string | undefined)[]) => {
  const [row] = await database.sql<{ read: (string | null)[] }[]>`select to_json(${texts(database.sql, all)}) as read`
  return row?.read
}

test.each([
  { all: ['{"a":"ä\\u0000\\n"}', '"\u2028 {},\\\\ NULL"', '[]'] },
  { all: ['NULL'] },
  { all: ['first', undefined, 'last'], read: ['first', null, 'last'] },
  { all: [undefined, undefined], read: [null, null] },
  // Nothing, or one that is missing, beside a column that has it.
  { all: [], read: [] },
  { all: [undefined], read: [] },
])('$all are read as they were', async ({ all, read = all }) => {
  expect(await asRead(all)).toEqual(read)
})

test('a text that would be taken for two is refused', () => {
  expect(() => texts(database.sql, ['one', 'two\x1eparts'])).toThrow('U+001E')
})
