import { openDatabase, type Sql, type TransactionSql } from '@app/shared/database/database.ts'
import { type Lane, laneColumns } from '@app/shared/mailbox/lanes.ts'
import type { TurningOptions } from '@app/shared/mailbox/mailbox.ts'
import { recordTurn } from '@app/shared/mailbox/turn.ts'
import { newId } from '@app/shared/values/ids.ts'
import { createTestDatabase } from '@app/test/database.ts'
import { untilSomebodyWaits } from '@app/test/lock-waits.ts'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { recordEvents, recordWithin, toRow } from '../fan-out/record-events.ts'
import { createLaneHealth } from './lane-health.ts'
import { lockLines } from './lines.ts'
import { createDueFloors } from './due-floors.ts'
import { type Attempt, nextDue } from './open-attempts.ts'
import type { Outcome } from './outcome.ts'
import { recordAttempts } from './record-attempts.ts'
import { mostTries } from './schedule.ts'

let database: Awaited<ReturnType<typeof createTestDatabase>>
let sql: Sql
const organizationId = newId('org')
const [first, second] = ['wbs_1', 'wbs_2'] as const

beforeAll(async () => {
  database = await createTestDatabase('webhooks')
  sql = openDatabase(database.url, 'webhooks')
})
afterAll(async () => {
  await sql.end()
  await database.drop()
})
beforeEach(async () => {
  await sql`truncate subscriptions, secrets, lanes, due_deliveries`
  for (const id of [first, second]) {
    await sql`
      insert into subscriptions (id, organization_id, url, events, created_at, updated_at)
      values (${id}, ${organizationId}, 'https://example.com/', '{message.sent}', now() - interval '1 hour', now())
    `
    await sql`insert into lanes (id, grp, held_until) values (${id}, ${organizationId}, now() + interval '1 hour')`
  }
})

function rowsOf(line?: string) {
  const headers = {
    organization: organizationId,
    event: newId('evt'),
    type: 'message.sent',
    at: new Date().toISOString(),
    line,
  }
  const row = toRow({ subject: 'event.messaging.message-sent', headers, payload: Buffer.from('{}') })
  return row ? [row] : []
}
const record = (line?: string) => recordEvents(sql, rowsOf(line))

const ended = (lane: Lane, kind: 'succeeded' | 'failed') => ({
  item: { id: newId('wbd'), laneId: lane.id, number: 1, tries: 0, line: null, url: 'https://example.com/' } as Attempt,
  lane,
  owner: { lane, tenant: organizationId, inWork: 1, claimedAt: 0, heldSince: 0, release: { waitMs: null } },
  outcome: { kind, attempt: { startedAtMs: Date.now(), durationMs: 1, status: 200, snippet: null, error: null } },
})

test.each([
  ['begins to fail', 'true'],
  ['fails for a process that has lost it', 'false'],
])(
  'an event for two endpoints, of which one is well and the other %s, does not wait in a circle with the record of that',
  async (_, isHeld) => {
    const lanes = await sql<Lane[]>`select ${laneColumns(sql, 'lanes')} from lanes order by id`
    const batch = lanes.map((lane) => ended(lane, lane.id === first ? 'succeeded' : 'failed'))
    await sql`update lanes set held_until = held_until + interval '1 hour' where id = ${second} and not ${isHeld}`
    const health = createLaneHealth()
    let recording: Promise<PromiseSettledResult<unknown>[]> | undefined
    const turn = {
      options: {
        lanes: 'lanes',
        slots: 10,
        refill: true,
        capacity: () => 1,
        async next() {
          recording = Promise.allSettled([record()])
          await untilSomebodyWaits(sql)
          return []
        },
        work: () => Promise.resolve(null),
        nextDue: (tx, laneIds) => nextDue(tx, createDueFloors(), laneIds),
        settle: (tx, done, lockLanes) => recordAttempts(tx, done, health, lockLanes),
      } satisfies TurningOptions<Attempt, Outcome>,
      batch,
      empty: [],
      roomy: [],
      freeSlots: 10,
      inWork: new Map(),
      heldBack: new Set<string>(),
      failing: [],
      mostFailing: Infinity,
    }
    await sql.begin((tx) => recordTurn(tx, turn, () => true))
    expect(await recording).toMatchObject([{ status: 'fulfilled', value: [{ count: 2 }] }])
  },
)

/** Begins the first delivery of the first subscription. */
async function beginFirst() {
  const [begun] = await sql<{ id: string }[]>`
    update due_deliveries set attempts = 1, begun_at = now() where subscription_id = ${first} and due_at is not null returning id
  `
  const [lane] = await sql<Lane[]>`select ${laneColumns(sql, 'lanes')} from lanes where id = ${first}`
  if (!begun || !lane) throw new Error('nothing is begun')
  return { ...begun, lane }
}

test('whoever has taken over a lane since is woken when the next delivery of a line gets its time', async () => {
  await record('cus_1')
  await record('cus_1')
  const { id, lane } = await beginFirst()
  await sql`update lanes set held_until = now() + interval '9 s', due_at = now() + interval '25 s' where id = ${first}`
  const { item, ...one } = ended(lane, 'succeeded')
  const done = [{ ...one, item: { ...item, id, line: 'cus_1' } }]
  await sql.begin((tx) => recordAttempts(tx, done, createLaneHealth(), () => Promise.resolve()))
  const found = await sql`
    select l.due_at <= now() as is_due, d.due_at <= now() as has_time
    from lanes l join due_deliveries d on d.subscription_id = l.id where l.id = ${first}
  `
  expect(found).toEqual([{ isDue: true, hasTime: true }])
})

test('whoever has taken over a lane since is woken when a delivery that it saw in a call has failed', async () => {
  await record()
  const { id, lane } = await beginFirst()
  await sql`update lanes set held_until = now() + interval '9 s', due_at = now() + interval '25 s' where id = ${first}`
  const { item, ...one } = ended(lane, 'failed')
  const done = [{ ...one, item: { ...item, id } }]
  await sql.begin((tx) => recordAttempts(tx, done, createLaneHealth(), () => Promise.resolve()))
  expect(await sql`select due_at <= now() as is_due from lanes where id = ${first}`).toEqual([{ isDue: true }])
})

test('the first of a line that failed is tried again in its time, and what it came to is recorded as it was', async () => {
  await record('cus_1')
  const { id, lane } = await beginFirst()
  const { item, outcome, ...one } = ended(lane, 'failed')
  const startedAt = new Date(Date.now() - 14_000)
  const attempt = {
    ...outcome.attempt,
    startedAtMs: startedAt.getTime(),
    durationMs: 13_000,
    status: 500,
    snippet: 'oops',
  }
  const done = [{ ...one, item: { ...item, id, line: 'cus_1' }, outcome: { ...outcome, attempt } }]
  await sql.begin((tx) => recordAttempts(tx, done, createLaneHealth(), () => Promise.resolve()))
  const found = await sql`select due_at > now() + interval '2 s' as waits from due_deliveries where id = ${id}`
  expect(found).toEqual([{ waits: true }])
  // Who still holds the lane sees to it, and is not woken.
  expect(await sql`select arrivals from lanes where id = ${first}`).toEqual([{ arrivals: lane.arrivals }])
  expect(
    await sql`select started_at, duration_ms, response_status, response_body_snippet from attempts where delivery_id = ${id}`,
  ).toEqual([{ startedAt, durationMs: 13_000, responseStatus: 500, responseBodySnippet: 'oops' }])
})

test('what comes into a line while the delivery in front of it is recorded gets its time', async () => {
  await record('cus_1')
  await record('cus_1')
  const { id, lane } = await beginFirst()
  const settle = (tx: TransactionSql, delivery: string) => {
    const { item, ...one } = ended(lane, 'succeeded')
    const done = [{ ...one, item: { ...item, id: delivery, line: 'cus_1' } }]
    return recordAttempts(tx, done, createLaneHealth(), () => Promise.resolve())
  }
  const recorded = Promise.withResolvers<void>()
  const committed = Promise.withResolvers<void>()
  let third: Promise<unknown> = Promise.resolve()
  let next = ''
  await sql.begin(async (tx) => {
    await settle(tx, id)
    // What comes while the first leaves finds the second in front of it.
    third = sql.begin(async (arriving) => {
      await recordWithin(arriving, rowsOf('cus_1'))
      recorded.resolve()
      await committed.promise
    })
    await untilSomebodyWaits(sql)
    const [begun] = await tx<{ id: string }[]>`
      update due_deliveries set attempts = 1, begun_at = now() where subscription_id = ${first} returning id
    `
    next = begun?.id ?? ''
  })
  await recorded.promise
  const second = sql.begin((tx) => settle(tx, next))
  await Promise.race([second, untilSomebodyWaits(sql)])
  committed.resolve()
  await Promise.all([second, third])
  const found = await sql`select due_at <= now() as has_time from due_deliveries where subscription_id = ${first}`
  expect(found).toEqual([{ hasTime: true }])
})

test('of events of a line that are recorded at the same time, the second waits for the first', async () => {
  let recording: Promise<unknown> | undefined
  await sql.begin(async (tx) => {
    await recordWithin(tx, rowsOf('cus_1'))
    recording = record('cus_1')
    await untilSomebodyWaits(sql)
  })
  await recording
  const found =
    await sql`select due_at is not null as has_time from due_deliveries where subscription_id = ${first} order by seq`
  expect(found).toEqual([{ hasTime: true }, { hasTime: false }])
})

test('lines are taken in one order', async () => {
  const lines = Array.from({ length: 8 }, (_, n) => ({ line: `cus_${n}` }))
  const keys = await sql<{ key: string }[]>`
    select hashtextextended(line, 0)::text as key from unnest(${lines.map(({ line }) => line)}::text[]) line order by hashtextextended(line, 0)
  `
  const { locking, free } = await sql.begin(async (tx) => {
    await tx`select pg_advisory_xact_lock(${keys[0]?.key ?? ''}::bigint)`
    const waits = sql.begin((another) => lockLines(another, lines))
    await untilSomebodyWaits(sql)
    const others = await sql`
      select key from unnest(${keys.slice(1).map(({ key }) => key)}::bigint[]) key where pg_try_advisory_xact_lock(key)
    `
    return { locking: waits, free: others.length }
  })
  await locking
  expect(free).toBe(7)
})

test('events of lines that are recorded together: the first of each line gets its time, and they stand as they came', async () => {
  const rows = Array.from({ length: 12 }, (_, n) => rowsOf(`cus_${n % 2}`)).flat()
  await recordEvents(sql, rows)
  const found = await sql`
    select event_id, due_at is not null as has_time from due_deliveries where subscription_id = ${first} order by seq
  `
  expect(found).toEqual(rows.map(({ head }, n) => ({ eventId: head.event_id, hasTime: n < 2 })))
})

test('of events of a line that are recorded together, the first of each subscription gets its time', async () => {
  await sql`update subscriptions set events = '{message.status}' where id = ${second}`
  const rows = [
    ...rowsOf('cus_1'),
    ...rowsOf('cus_1').map((row) => ({ ...row, head: { ...row.head, type: 'message.status' } })),
  ]
  await recordEvents(sql, rows)
  const found = await sql`select subscription_id as id, due_at is not null as has_time from due_deliveries order by 1`
  expect(found).toEqual([first, second].map((id) => ({ id, hasTime: true })))
})

test('an event waits behind those of its line to its own subscription alone', async () => {
  await record('cus_1')
  await sql`delete from due_deliveries where subscription_id = ${second}`
  await record('cus_1')
  const found = await sql`select due_at is not null as has_time from due_deliveries where subscription_id = ${second}`
  expect(found).toEqual([{ hasTime: true }])
})

test.each([
  ['deleted', `delete from subscriptions where id = '${first}'`],
  ['disabled', `update subscriptions set status = 'disabled', disabled_at = now() where id = '${first}'`],
])(
  'what fails when its subscription was %s meanwhile is given up with it, whatever its endpoint asked for',
  async (how, change) => {
    await record()
    const { id, lane } = await beginFirst()
    await sql.unsafe(change)
    const { item, outcome, ...one } = ended(lane, 'failed')
    const done = [{ ...one, item: { ...item, id }, outcome: { ...outcome, kind: 'wait' as const, waitMs: 86_400_000 } }]
    await sql.begin((tx) => recordAttempts(tx, done, createLaneHealth(), () => Promise.resolve()))
    expect(await sql`select error_code from dead_deliveries where id = ${id}`).toEqual([
      { errorCode: `subscription_${how}` },
    ])
  },
)

test.each(['before the failure of one is noted', 'before one is woken that its holder has lost'])(
  'all lanes are locked, in the order that others keep, %s',
  async (why) => {
    const isLost = why.endsWith('lost')
    await record('cus_1')
    await record('cus_1')
    const { id, lane } = await beginFirst()
    if (isLost) await sql`update lanes set held_until = held_until + interval '9 s' where id = ${first}`
    const { item, ...one } = ended(lane, isLost ? 'succeeded' : 'failed')
    const free: number[] = []
    const lockLanes = async () => void free.push((await sql`select from lanes for update skip locked`).length)
    const done = [{ ...one, item: { ...item, id, line: 'cus_1' } }]
    await sql.begin((tx) => recordAttempts(tx, done, createLaneHealth(), lockLanes))
    expect(free).toEqual([2])
  },
)

test('a delivery of which the payload is gone is no failure of its endpoint', async () => {
  const kind = 'expired' as const
  await record()
  const { id, lane } = await beginFirst()
  const { item, outcome, ...one } = ended(lane, 'failed')
  const done = [{ ...one, item: { ...item, id }, outcome: { ...outcome, kind } }]
  const next = await sql.begin((tx) => recordAttempts(tx, done, createLaneHealth(), () => Promise.resolve()))
  expect(next).toEqual([])
  expect(await sql`select error_code from dead_deliveries where id = ${id}`).toEqual([{ errorCode: kind }])
})

test('of two attempts of a delivery that are recorded together, the one that was accepted counts, though the other was its last', async () => {
  await record()
  const { id, lane } = await beginFirst()
  await sql`update due_deliveries set attempts = 2 where id = ${id}`
  const done = (['succeeded', 'failed'] as const).map((kind, n) => {
    const { item, ...one } = ended(lane, kind)
    return { ...one, item: { ...item, id, number: n + 1, tries: mostTries - 1 } }
  })
  await sql.begin((tx) => recordAttempts(tx, done, createLaneHealth(), () => Promise.resolve()))
  expect(
    await sql`select id from due_deliveries where id = ${id} union all select id from dead_deliveries where id = ${id}`,
  ).toEqual([])
  expect(await sql`select number from attempts where delivery_id = ${id} order by number`).toEqual([
    { number: 1 },
    { number: 2 },
  ])
})

test('the jobs of replayed deliveries are taken in one order', async () => {
  const replays = Array.from({ length: 8 }, (_, n) => `rpl_${n}`)
  await sql`
    insert into replays (id, organization_id, subscription_id, source, position, end_id, matched, created_at, finished_at)
    select r, ${organizationId}, ${first}, 'dead', '', '', 1, now(), now() from unnest(${replays}::text[]) r
  `
  for (const _ of replays) await record()
  const begun = await sql<{ id: string }[]>`
    update due_deliveries set attempts = 1, begun_at = now() where subscription_id = ${first} returning id
  `
  const [lane] = await sql<Lane[]>`select ${laneColumns(sql, 'lanes')} from lanes where id = ${first}`
  if (!lane) throw new Error('no lane')
  const done = begun.map(({ id }, n) => {
    const { item, ...one } = ended(lane, 'succeeded')
    return { ...one, item: { ...item, id, replayId: replays[n] ?? null } }
  })
  for (const { item } of done) await sql`update due_deliveries set replay_id = ${item.replayId} where id = ${item.id}`
  const { settling, free } = await sql.begin(async (tx) => {
    await tx`select from replays where id = 'rpl_0' for no key update`
    const waits = sql.begin(async (settlement) => {
      // As with many of them: else the statement that counts may come upon them in this order by itself.
      await settlement`set local enable_sort = off`
      await recordAttempts(settlement, done, createLaneHealth(), () => Promise.resolve())
    })
    await untilSomebodyWaits(sql)
    const others = await sql`select id from replays where id > 'rpl_0' for no key update skip locked`
    return { settling: waits, free: others.length }
  })
  await settling
  expect(free).toBe(7)
  expect(await sql`select sum(succeeded)::int as succeeded from replays`).toEqual([{ succeeded: 8 }])
})
