import { randomBytes } from 'node:crypto'
import type { Want } from '@app/shared/mailbox/mailbox.ts'
import { createTestDatabase, type TestDatabase } from '@app/test/database.ts'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { createItemFloors } from './item-floors.ts'
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

const take = (lanes: string[], floors = createItemFloors()) =>
  database.sql.begin((tx) => takeItems(tx, floors, lanes.map(wantOf)))

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

/** Floors for which every look is dear, and that go by a clock of the test's own. */
function dearFloors() {
  let nowMs = 0
  const { looked, ...floors } = createItemFloors(() => nowMs)
  const dear = (looks: Parameters<typeof looked>[0]) => looked(looks, 3_000)
  return { ...floors, looked: dear, pass: (ms: number) => void (nowMs += ms) }
}

const handle = () => database.sql`delete from callback_items`

/** With its number, as if it had been committed that late. */
const waitAt = (lane: string, seq: number) => {
  const item = { entryId: '1', metadata: { phone_number_id: lane }, contacts: [], part: { n: seq } }
  return database.sql`
    insert into callback_items (callback_id, lane, kind, item, seq) overriding system value
    values (1, ${lane}, 'change', ${JSON.stringify(item)}::text::jsonb, ${seq})
  `
}

test('once looks are dear they begin where all was handled some seconds before, for a while', async () => {
  const [lane = ''] = numbers
  const floors = dearFloors()
  const seen = async () => (await take([lane], floors)).flatMap(ordinals)
  await waitAt(lane, 1_000_000)
  expect(await seen()).toEqual([1_000_000])
  await handle()
  floors.pass(10_000)
  await waitAt(lane, 999_999)
  await waitAt(lane, 1_000_001)
  expect(await seen()).toEqual([1_000_001])
  await database.sql`delete from callback_items where seq = 1000001`
  expect(await seen()).toEqual([])
  expect(floors.restMs(lane)).toBe(20_000)
  floors.pass(20_000)
  expect(await seen()).toEqual([999_999])
  await handle()
  expect(await seen()).toEqual([])
})

test('what nobody may take yet is not passed over', async () => {
  const [lane = ''] = numbers
  const floors = dearFloors()
  await waitAt(lane, 1_000_000)
  await waitAt(lane, 1_000_001)
  await database.sql`update callback_items set received_at = '1969-01-01' where seq = 1000000`
  for (let n = 0; n < 3; n++) {
    expect((await take([lane], floors)).flatMap(ordinals)).toEqual([1_000_001])
    floors.pass(10_000)
  }
  await database.sql`update callback_items set received_at = now() where seq = 1000000`
  expect((await take([lane], floors)).flatMap(ordinals)).toEqual([1_000_000, 1_000_001])
})
