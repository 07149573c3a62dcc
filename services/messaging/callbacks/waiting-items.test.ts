import { randomBytes } from 'node:crypto'
import type { Want } from '@app/shared/mailbox/mailbox.ts'
import { createTestDatabase, type TestDatabase } from '@app/test/database.ts'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { takeItems } from './waiting-items.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase('messaging')
  await database.sql`
    insert into senders (organization_id, phone_number_id, account_id, business_account_id, version, team_id, attached, sealed_token, settings)
    select 'org_1', n::text, 'acc_' || n, '1', 1, 'team_1', true, 'sealed', '{}' from generate_series(1000000, 1000063) n
  `
})
afterAll(() => database.drop())
beforeEach(() => database.sql`truncate callback_items`)

const numbers = Array.from({ length: 64 }, (_, n) => String(1_000_000 + n))

/** As many items of each number, with a text that is so long. */
const wait = (lanes: string[], count: number, text: string) => database.sql`
  insert into callback_items (callback_id, lane, kind, item)
  select n, lane, 'change', jsonb_build_object(
    'entryId', '1', 'metadata', jsonb_build_object('phone_number_id', lane), 'contacts', '[]'::jsonb,
    'part', jsonb_build_object('n', n, 'text', ${text}::text)
  )
  from unnest(${lanes}::text[]) lane, generate_series(1, ${count}::int) n order by lane, n
`

const wantOf = (id: string): Want => ({
  lane: { id, group: 'org_1', arrivals: '0', heldUntil: '', failures: 0, pacedMs: 0 },
  free: 1,
  fresh: true,
  heldMs: 0,
})

const take = (lanes: string[]) => database.sql.begin((tx) => takeItems(tx, lanes.map(wantOf)))

const ordinals = ({ items }: { items: { part: Record<string, unknown> }[] }) => items.map(({ part }) => part['n'])

/** Texts that nobody can compress, as one long enough to be stored elsewhere is. */
const text = (bytes: number) => randomBytes(bytes / 2).toString('hex')

test('small items come 64 at a time, of each lane the oldest', async () => {
  await wait(numbers.slice(0, 16), 70, 'delivered')
  const batches = await take(numbers.slice(0, 16))
  expect(batches).toHaveLength(16)
  const first = Array.from({ length: 64 }, (_, n) => n + 1)
  for (const batch of batches) expect(ordinals(batch)).toEqual(first)
})

test('of large items so many come that all lanes together are read well within the time of a statement', async () => {
  await wait(numbers, 3, text(40_000))
  const batches = await take(numbers)
  expect(batches).toHaveLength(64)
  for (const batch of batches) expect(ordinals(batch)).toEqual([1, 2])
})

test('a lane alone gets more of them', async () => {
  const [lane = ''] = numbers
  await wait([lane], 10, text(40_000))
  expect(ordinals((await take([lane]))[0] ?? { items: [] })).toEqual([1, 2, 3, 4, 5, 6, 7])
})

test('one that is larger than all of that comes alone, and in its turn', async () => {
  const [lane = ''] = numbers
  await wait([lane], 1, 'small')
  await wait([lane], 2, text(400_000))
  expect(ordinals((await take([lane]))[0] ?? { items: [] })).toEqual([1, 1])
})

test('what is small since it is compressed counts as large', async () => {
  const [lane = ''] = numbers
  await wait([lane], 12, 'as it was '.repeat(30_000))
  const [batch] = await take([lane])
  expect(batch?.items.length).toBeLessThan(8)
})
