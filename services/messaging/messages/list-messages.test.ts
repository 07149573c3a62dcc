import { randomBytes } from 'node:crypto'
import type { Input } from '@app/shared/api/contract.ts'
import { systemCaller } from '@app/shared/bus/ask.ts'
import type { listMessages as contract } from '@app/shared/contracts/messaging.ts'
import { newId, timeOf } from '@app/shared/values/ids.ts'
import { createTestDatabase, type TestDatabase } from '@app/test/database.ts'
import { untilSomebodyWaits } from '@app/test/lock-waits.ts'
import { pagesRead, rowsRead } from '@app/test/rows-read.ts'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { type App, createQueryTurns } from '../app.ts'
import { listMessages } from './list-messages.ts'

type Query = Input<typeof contract>['query']

const organizationId = newId('org')
/** Numbers with 5,000 messages of one kind, and behind them three of each kind. */
const [ofInbound, ofOutbound] = ['106540352242922', '106540352242923']
const kinds = [
  { direction: 'inbound', status: 'delivered' },
  { direction: 'inbound', status: 'read' },
  { direction: 'outbound', status: 'queued' },
  { direction: 'outbound', status: 'delivered' },
  { direction: 'outbound', status: 'failed' },
] as const
const keys = { current: 'k1', byId: new Map([['k1', randomBytes(32)]]) }
let database: TestDatabase

beforeAll(async () => {
  database = await createTestDatabase('messaging')
  for (const kind of kinds) for (const number of [ofInbound, ofOutbound]) await insert(kind, 3, number)
  await insert({ direction: 'inbound', status: 'delivered' }, 5_000, ofInbound)
  await insert({ direction: 'outbound', status: 'delivered' }, 5_000, ofOutbound)
  for (let n = 0; n < 200; n++)
    await insert({ direction: 'inbound', status: 'read' }, 20, String(2e11 + n), newId('org'))
  await database.admin.unsafe('vacuum (analyze) messaging.messages')
})
afterAll(() => database.drop())

async function insert(
  { direction, status }: (typeof kinds)[number],
  count: number,
  number: string,
  of = organizationId,
  { sql } = database,
) {
  // Ten of a conversation, whose id is that of its first message.
  const ids = Array.from({ length: count }, () => newId('msg'))
  await sql`
    insert into messages (organization_id, phone_number_id, id, conversation_id, contact_id, direction, type, body, parties,
      status, rank, request_id, created_at)
    select ${of}, ${number}, id, min(id) over (partition by (n - 1) / 10), 'ctc_1', ${direction}, 'text', '{}', '{}',
      ${status}, 0, 'req_1', now()
    from unnest(${ids}::text[]) with ordinality as i(id, n)
  `
}

/** What a list has, and how much was read for it by the plan that is kept, which is made for any number, or by another. */
async function list(number: string, query: Partial<Query>, { of = database, plans = 'force_generic_plan' } = {}) {
  return of.sql.begin(async (tx) => {
    await tx`select set_config('plan_cache_mode', ${plans}, true)`
    const app = { sql: tx, cursorKeys: keys, ...createQueryTurns() } as unknown as App
    const input = { params: { phone_number_id: number }, query: { limit: '10', ...query } as Query }
    const before = await rowsRead(tx, ['messages'])
    const pagesBefore = await pagesRead(tx, '^messages_of_kind$')
    const page = await listMessages(app, { ...input, body: undefined } as never, systemCaller(organizationId))
    const rows = (await rowsRead(tx, ['messages'])) - before
    if ('whole' in page) throw new Error('a list has no stored answer')
    return {
      found: page.data.map(({ direction, status, id }) => ({ direction, status, id })),
      cursor: page.next_cursor ?? undefined,
      rows,
      pages: (await pagesRead(tx, '^messages_of_kind$')) - pagesBefore,
    }
  })
}

const withOne = kinds.flatMap((kind) => [kind, { direction: kind.direction }, { status: kind.status }])
test.each(withOne.flatMap((filter) => [ofInbound, ofOutbound].map((number) => [filter, number] as const)))(
  'messages of %o of the number %s are found without reading the others',
  async (filter, number) => {
    const { status, ...more } = { status: undefined, ...filter }
    const asked = { ...more, ...(status && { status: status === 'queued' ? 'pending' : status }) } as Partial<Query>
    const { found, rows } = await list(number, asked)
    expect(found.length).toBeGreaterThanOrEqual(3)
    for (const one of found) expect(one).toMatchObject(asked)
    expect(found.map(({ id }) => id)).toEqual(
      found
        .map(({ id }) => id)
        .toSorted()
        .toReversed(),
    )
    expect(rows).toBeLessThan(100)
  },
)

test.each(['force_generic_plan', 'force_custom_plan'])(
  'where all messages are of one kind, those of another are looked for without reading them: %s',
  async (plans) => {
    const alike = await createTestDatabase('messaging')
    onTestFinished(alike.drop)
    await insert({ direction: 'outbound', status: 'delivered' }, 20_000, ofOutbound, organizationId, alike)
    await alike.admin.unsafe('vacuum (analyze) messaging.messages')
    for (const query of [{ status: 'failed' }, { direction: 'inbound' }] as const)
      expect(await list(ofOutbound, query, { of: alike, plans })).toMatchObject({ found: [], rows: 0 })
    const { found, rows } = await list(ofOutbound, { status: 'delivered' }, { of: alike, plans })
    expect(found).toHaveLength(10)
    expect(rows).toBeLessThan(100)
  },
)

test.each(['force_generic_plan', 'force_custom_plan'])(
  'a number that has few of a kind is listed without going through those of all other organizations: %s',
  async (plans) => {
    const shared = await createTestDatabase('messaging')
    onTestFinished(shared.drop)
    for (let n = 0; n < 20; n++)
      await insert({ direction: 'inbound', status: 'read' }, 2_000, String(3e11 + n), `org_${n}`, shared)
    await insert({ direction: 'inbound', status: 'read' }, 3, ofInbound, organizationId, shared)
    await shared.admin.unsafe('vacuum (analyze) messaging.messages')
    for (const query of [
      { status: 'read' },
      { direction: 'inbound' },
      { status: 'read', direction: 'inbound' },
    ] as const) {
      const { found, pages } = await list(ofInbound, query, { of: shared, plans })
      expect(found).toHaveLength(3)
      expect(pages).toBeLessThan(60)
    }
  },
)

test('a conversation, a direction and a status may be asked for together', async () => {
  const { found } = await list(ofOutbound, { status: 'failed' })
  const query = { conversation_id: found.at(-1)?.id, direction: 'outbound', status: 'failed' } as const
  expect(await list(ofOutbound, query)).toMatchObject({ found })
  expect(await list(ofOutbound, { ...query, direction: 'inbound' })).toMatchObject({ found: [] })
  expect(await list(ofOutbound, { ...query, status: 'read' })).toMatchObject({ found: [] })
  expect(await list(ofInbound, query)).toMatchObject({ found: [] })
})

test("one organization's lists of a conversation's messages of a kind leave connections for others", async () => {
  const app = { sql: database.sql, cursorKeys: keys, ...createQueryTurns() } as unknown as App
  const query = { conversation_id: newId('cnv'), status: 'failed' } as const
  let ended = 0
  const lists = await database.sql.begin(async (tx) => {
    // They take as long as those of a conversation with very many.
    await tx`lock table messages`
    const input = { params: { phone_number_id: ofInbound }, query, body: undefined } as never
    const list = () => Promise.resolve(listMessages(app, input, systemCaller(organizationId))).finally(() => ended++)
    const all = Promise.allSettled(Array.from({ length: 30 }, list))
    await untilSomebodyWaits(database.sql)
    await database.sql`select 1`
    expect(ended).toBe(0)
    return { all }
  })
  expect((await lists.all).filter(({ status }) => status === 'fulfilled')).toHaveLength(30)
})

test('messages before and after a time are those of other milliseconds', async () => {
  const all = (await list(ofOutbound, { direction: 'inbound' })).found
  const timed = all.map((one) => ({ ...one, at: timeOf(one.id).getTime() }))
  for (const { at } of timed) {
    const time = new Date(at).toISOString()
    const ids = async (query: Partial<Query>) =>
      (await list(ofOutbound, { direction: 'inbound', ...query })).found.map(({ id }) => id)
    expect(await ids({ created_after: time })).toEqual(timed.filter((one) => one.at > at).map(({ id }) => id))
    expect(await ids({ created_before: time })).toEqual(timed.filter((one) => one.at < at).map(({ id }) => id))
  }
})

test('messages of a conversation are found without reading the others of its number', async () => {
  const of = { direction: 'inbound', status: 'delivered' } as const
  const [newest] = (await list(ofInbound, of)).found
  const [row] = await database.sql<{ conversationId: string }[]>`
    select conversation_id from messages where id = ${newest?.id ?? ''}
  `
  for (const more of [{}, of]) {
    const query = { conversation_id: row?.conversationId, limit: '20', ...more }
    const { found, rows } = await list(ofInbound, query)
    expect(found).toHaveLength(10)
    expect(rows).toBeLessThan(100)
  }
})

test.each([[{}], [{ status: 'delivered' }]] as [Partial<Query>][])(
  'of a conversation of another number one message is read, not all: %o',
  async (more) => {
    const long = await createTestDatabase('messaging')
    onTestFinished(long.drop)
    await insert({ direction: 'inbound', status: 'delivered' }, 2_000, ofInbound, organizationId, long)
    await long.sql`update messages set conversation_id = 'cnv_long'`
    await long.admin.unsafe('vacuum (analyze) messaging.messages')
    for (const plans of ['force_generic_plan', 'force_custom_plan']) {
      const asked = { conversation_id: 'cnv_long', ...more }
      const { found, rows } = await list(ofOutbound, asked, { of: long, plans })
      expect(found).toEqual([])
      expect(rows).toBe(1)
      expect((await list(ofInbound, asked, { of: long, plans })).found).toHaveLength(10)
    }
  },
)

test('pages follow each other through the kinds', async () => {
  const all = (await list(ofInbound, { direction: 'outbound' })).found.map(({ id }) => id)
  expect(all).toHaveLength(9)
  const first = await list(ofInbound, { direction: 'outbound', limit: '4' })
  const rest = await list(ofInbound, { direction: 'outbound', limit: '5', cursor: first.cursor })
  expect([...first.found, ...rest.found].map(({ id }) => id)).toEqual(all)
  expect(rest.cursor).toBeUndefined()
})
