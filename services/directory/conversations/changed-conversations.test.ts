import { afterAll, beforeAll, expect, test } from 'vitest'
import { newNumber, testDirectory, type TestDirectory } from '../testing/app.ts'

let directory: TestDirectory
beforeAll(async () => {
  directory = await testDirectory()
})
afterAll(() => directory.drop())

type Number = Awaited<ReturnType<typeof newNumber>>
const start = '2026-01-01T00:00:00.000Z'

/** All changes after a moment, over pages of three. */
async function changesSince(number: Number, updated_since: string, status?: 'open' | 'pending') {
  const seen: { id: string; updated_at: string }[] = []
  let cursor: string | null = null
  do {
    const page: Awaited<ReturnType<Number['listConversations']>> = await number.listConversations({
      updated_since,
      limit: '3',
      ...(status && { status }),
      ...(cursor !== null && { cursor }),
    })
    seen.push(...page.data)
    cursor = page.next_cursor
  } while (cursor !== null)
  return seen
}

const ids = (rows: { id: string }[]) => rows.map(({ id }) => id)

/** Until what has happened so far is settled. */
const settle = () => directory.sql`select pg_sleep(0.15)`

async function someConversations(number: Number, count: number) {
  const made: string[] = []
  for (let n = 0; n < count; n++) made.push((await number.open({ phone_number: `+1555012300${n}` })).conversation.id)
  return made
}

test('what changed is shown newest first, of all statuses or of one, each once', async () => {
  const number = await newNumber(directory.app)
  const made = await someConversations(number, 8)
  // What changes in one millisecond is shown by its ids.
  const nextMoment = () => directory.sql`select pg_sleep(0.002)`
  await nextMoment()
  await directory.sql`update conversations set status = 'pending', updated_at = now() where id = ${made[2] ?? ''}`
  await nextMoment()
  await directory.sql`update conversations set status = 'resolved', updated_at = now() where id = ${made[0] ?? ''}`
  await settle()
  const [a, b, c, ...rest] = made
  expect(ids(await changesSince(number, start))).toEqual([a, c, ...rest.toReversed(), b])
  expect(ids(await changesSince(number, start, 'pending'))).toEqual([c])
  const [newest, second] = await changesSince(number, start)
  expect(ids(await changesSince(number, second?.updated_at ?? ''))).toEqual([newest?.id])
  expect(await changesSince(number, newest?.updated_at ?? '')).toEqual([])
  const contactId = (await number.getConversation(a ?? '')).contact.id
  const { data } = await number.listConversations({ updated_since: start, contact_id: contactId })
  expect(ids(data)).toEqual([a])
})

test.each([
  '0000-01-01T00:00:00Z',
  '0000-01-01T00:00:00+01:00',
  '9999-12-31T23:59:59Z',
  '9999-12-31T23:59:59-01:00',
  '2026-01-01T00:00:00.123456+14:00',
  '2026-01-01T00:00:00+23:59',
])('%s is a moment like any other', async (since) => {
  const number = await newNumber(directory.app)
  await someConversations(number, 1)
  await settle()
  expect(await changesSince(number, since)).toHaveLength(since.startsWith('9') ? 0 : 1)
})

test('nothing is shown that a transaction still open could come before', async () => {
  const number = await newNumber(directory.app)
  const [slow = '', fast = ''] = await someConversations(number, 2)
  await settle()
  const [newest] = await changesSince(number, start)
  const since = newest?.updated_at ?? ''
  await directory.sql.begin(async (tx) => {
    await tx`update conversations set updated_at = now() where id = ${slow}`
    await directory.sql`update conversations set updated_at = now() where id = ${fast}`
    await settle()
    expect(await changesSince(number, since)).toEqual([])
  })
  await settle()
  expect(ids(await changesSince(number, since))).toEqual([fast, slow])
})

test('a client that goes on from the newest change it saw misses none, beside slow writers', async () => {
  const number = await newNumber(directory.app)
  const made = await someConversations(number, 9)
  const written = new Map<string, string>()
  const seen = new Map<string, string>()
  let since = start
  let isDone = false
  const writer = async (n: number) => {
    for (let i = 0; i < 15; i++) {
      const id = made[(n * 7 + i) % made.length] ?? ''
      await directory.sql.begin(async (tx) => {
        await tx`select pg_sleep(random() * 0.2)`
        const [row] = await tx<{ updatedAt: Date }[]>`
          update conversations set unread_count = unread_count + 1, updated_at = now() where id = ${id}
          returning updated_at
        `
        written.set(id, row?.updatedAt.toISOString() ?? '')
      })
    }
  }
  const sync = async () => {
    const rows = await changesSince(number, since)
    for (const { id, updated_at } of rows) seen.set(id, updated_at)
    since = rows.reduce((newest, { updated_at }) => (updated_at > newest ? updated_at : newest), since)
  }
  const syncing = (async () => {
    while (!isDone) await sync()
  })()
  await Promise.all([0, 1, 2, 3, 4, 5].map(writer))
  isDone = true
  await syncing
  await settle()
  await sync()
  const truth = await directory.sql<{ id: string; updatedAt: Date }[]>`
    select id, updated_at from conversations where organization_id = ${number.organizationId}
  `
  expect(seen).toEqual(new Map(truth.map(({ id, updatedAt }) => [id, updatedAt.toISOString()])))
})

test('a cursor of one mode is not good in the other', async () => {
  const number = await newNumber(directory.app)
  await someConversations(number, 2)
  await settle()
  const bad = { failure: 'invalid_cursor', param: 'cursor' }
  const { next_cursor: newest } = await number.listConversations({ limit: '1' })
  const { next_cursor: changed } = await number.listConversations({ limit: '1', updated_since: start })
  await expect(number.listConversations({ cursor: newest ?? '', updated_since: start })).rejects.toMatchObject(bad)
  await expect(number.listConversations({ cursor: changed ?? '' })).rejects.toMatchObject(bad)
})
