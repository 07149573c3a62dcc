import { openDatabase, type Sql } from '@app/shared/database/database.ts'
import { newId } from '@app/shared/values/ids.ts'
import { createTestDatabase } from '@app/test/database.ts'
import { untilSomebodyWaits } from '@app/test/lock-waits.ts'
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { createDueFloors, type DueFloors } from './due-floors.ts'
import { nextDue, openAttempts } from './open-attempts.ts'
import { createPayloads } from './payloads.ts'

let database: Awaited<ReturnType<typeof createTestDatabase>>
let sql: Sql
const [organizationId, laneId] = [newId('org'), newId('wbs')]

beforeAll(async () => {
  database = await createTestDatabase('webhooks')
  sql = openDatabase(database.url, 'webhooks', { max: 1 })
  await sql`
    insert into subscriptions (id, organization_id, url, events, created_at, updated_at)
    values (${laneId}, ${organizationId}, 'https://example.com/', '{message.sent}', now(), now())
  `
})
afterAll(async () => {
  await sql.end()
  await database.drop()
})
beforeEach(() => sql`truncate due_deliveries, attempts`)

interface Open {
  id: string
  dueInS: number
  attempts?: number
  begunS?: number
}

const waiting = (open: Open[]) => sql`
  insert into due_deliveries (id, organization_id, subscription_id, event_at, event_id, due_at, attempts, begun_at)
  select id, ${organizationId}, ${laneId}, now(), 'evt_' || id, now() + "dueInS" * interval '1 s', coalesce(attempts, 0),
    now() - "begunS" * interval '1 s'
  from json_to_recordset(${JSON.stringify(open)}::text::json) as o(id text, "dueInS" float8, attempts int, "begunS" float8)
`

const lane = (failures: number) => ({
  id: laneId,
  group: organizationId,
  arrivals: '0',
  heldUntil: '',
  failures,
  pacedMs: 0,
})

function open(failures: number, heldMs = 0, free = 10, floors = createDueFloors()) {
  const want = { lane: lane(failures), free, fresh: heldMs === 0, heldMs }
  return sql.begin((tx) => openAttempts(tx, createPayloads(), floors, [want]))
}

async function begun(...asked: Parameters<typeof open>) {
  const ids = (await open(...asked)).map(({ id }) => id)
  await sql`update due_deliveries set begun_at = null where id = any(${ids})`
  return ids
}

describe('every other probe of an open breaker', () => {
  const [toOldest, toLeastTried] = [5, 6]

  test('is of what came last, and not of what is tried again last', async () => {
    await waiting([
      { id: 'first', dueInS: -3_600, attempts: 3 },
      { id: 'again tomorrow', dueInS: 72_000, attempts: 9 },
      { id: 'new', dueInS: -1 },
    ])
    expect([await begun(toOldest), await begun(toLeastTried)]).toEqual([['first'], ['new']])
  })

  test('is of what was tried least, so that those that fail are passed, wherever they stand', async () => {
    await waiting([
      { id: 'first', dueInS: -3_600, attempts: 1 },
      { id: 'good', dueInS: -1_800 },
      { id: 'later', dueInS: -900, attempts: 1 },
      { id: 'last', dueInS: -1, attempts: 1 },
    ])
    expect([await begun(toLeastTried), await begun(toOldest)]).toEqual([['good'], ['first']])
  })

  test('is of what came last, however many are to be tried again', async () => {
    const tried = (when: string, dueInS: number) =>
      Array.from({ length: 100 }, (_, n) => ({ id: `${when} ${n}`, dueInS, attempts: 1 }))
    await waiting([
      ...tried('before', -60),
      { id: 'new', dueInS: -1 },
      { id: 'last', dueInS: 0, attempts: 1 },
      ...tried('later', 60),
    ])
    expect(await begun(toLeastTried)).toEqual(['new'])
  })

  test('is of another one while none is due', async () => {
    await waiting([
      { id: 'again tomorrow', dueInS: 72_000, attempts: 1 },
      { id: 'again soon', dueInS: 60, attempts: 1 },
    ])
    expect([await begun(toOldest), await begun(toLeastTried)]).toEqual([['again soon'], ['again tomorrow']])
  })
})

test.each([0, 5, 6])(
  'what was begun long ago is begun again, but not by who has begun it and holds its lane since (%i failures)',
  async (failures) => {
    await waiting([{ id: 'waits to be recorded', dueInS: -60, attempts: 1, begunS: 60 }])
    expect(await begun(failures, 61_000)).toEqual([])
    expect(await begun(failures, 59_000)).toEqual(['waits to be recorded'])
    const [attempt] = await sql`select number, error_code from attempts`
    expect(attempt).toEqual({ number: 1, errorCode: 'interrupted' })
  },
)

test('subscriptions that are gone lose 2,000 deliveries at a claim, all of them together, and each some: nobody waits long for that', async () => {
  const gone = Array.from({ length: 16 }, () => newId('wbs'))
  await sql`
    insert into due_deliveries (id, organization_id, subscription_id, event_at, event_id, event_type, due_at)
    select lane || n, ${organizationId}, lane, now(), 'evt_' || n, 'message.sent', now()
    from unnest(${gone}::text[]) lane, generate_series(1, 300) n
  `
  const wants = gone.map((id) => ({ lane: { ...lane(0), id }, free: 10, fresh: true, heldMs: 0 }))
  expect(await sql.begin((tx) => openAttempts(tx, createPayloads(), createDueFloors(), wants))).toEqual([])
  const left = await sql`
    select subscription_id, count(*)::int as open, count(begun_at)::int as begun from due_deliveries group by 1
  `
  const each = gone.map((subscriptionId) => ({ subscriptionId, open: 300 - 2_000 / 16, begun: 0 }))
  expect(left).toHaveLength(16)
  expect(left).toEqual(expect.arrayContaining(each))
})

test('what was begun in a hold that is over is begun again after 25 s: a call may take 15 s, and its record some more', async () => {
  await waiting([{ id: 'perhaps still out', dueInS: -60, attempts: 1, begunS: 24 }])
  expect(await begun(0)).toEqual([])
  await sql`update due_deliveries set begun_at = now() - interval '25.1 s'`
  expect(await begun(0)).toEqual(['perhaps still out'])
})

test('what another one begins while it is picked is not begun again', async () => {
  await waiting([{ id: 'picked by two', dueInS: -1 }])
  // Who picks waits in the middle of its statement, which then goes on with what it saw at its beginning.
  await sql.unsafe(`
    create policy held on subscriptions using (pg_advisory_xact_lock(1) is not null);
    alter table subscriptions enable row level security, force row level security
  `)
  onTestFinished(async () => {
    await sql.unsafe('alter table subscriptions no force row level security, disable row level security')
  })
  const { beginning } = await database.sql.begin(async (another) => {
    await another`select pg_advisory_xact_lock(1)`
    const late = begun(0)
    await untilSomebodyWaits(database.sql)
    await another`update due_deliveries set attempts = 1, begun_at = now()`
    return { beginning: late }
  })
  expect(await beginning).toEqual([])
  expect(await sql`select attempts from due_deliveries`).toEqual([{ attempts: 1 }])
})

test('one that was held up gives its newest beside its oldest, as many as it may together, and its oldest when that is one', async () => {
  await waiting(Array.from({ length: 20 }, (_, n) => ({ id: `${n}`, dueInS: n - 3_600 })))
  expect(await begun(0, 0, 5)).toEqual(['0', '1', '2', '18', '19'])
  expect(await begun(0, 0, 1)).toEqual(['0'])
  await sql`update due_deliveries set due_at = due_at + interval '59 minutes 30 s'`
  expect(await begun(0, 0, 5)).toEqual(['0', '1', '2', '3', '4'])
})

test('a probe tells how long its endpoint is probed: since its breaker opened in this row of failures, or since it paused itself', async () => {
  await waiting([{ id: 'one', dueInS: -1 }])
  const probedSeconds = async (probedS: number | null, failingS: number) => {
    await sql`
      insert into lanes (id, grp, probed_since, failing_since)
      values (${laneId}, ${organizationId}, now() - ${probedS}::float8 * interval '1 s', now() - ${failingS} * interval '1 s')
      on conflict (id) do update set probed_since = excluded.probed_since, failing_since = excluded.failing_since
    `
    const [attempt] = await open(5)
    await sql`update due_deliveries set begun_at = null`
    return Math.round((attempt?.probedMs ?? 0) / 1_000)
  }
  expect([await probedSeconds(600, 900), await probedSeconds(600, 300), await probedSeconds(null, 300)]).toEqual([
    600, 300, 300,
  ])
  onTestFinished(async () => {
    await sql`update subscriptions set status = 'active', disabled_reason = null, paused_at = null`
    await sql`truncate lanes`
  })
  await sql`
    update subscriptions set status = 'paused', disabled_reason = 'consecutive_failures', paused_at = now() - interval '100 s'
  `
  expect(await probedSeconds(600, 900)).toBe(100)
})

/** Floors for which every look is dear, and that go by a clock of the test's own. */
function dearFloors() {
  let nowMs = 0
  const { looked, ...floors } = createDueFloors(() => nowMs)
  const dear = (lanes: Parameters<typeof looked>[0]) => looked(lanes, 3_000)
  return { ...floors, looked: dear, pass: (ms: number) => void (nowMs += ms) }
}

const next = (floors: DueFloors) =>
  sql
    .begin((tx) => nextDue(tx, floors, [laneId]))
    .then((lanes) => lanes.map(({ waitMs }) => Math.round(waitMs / 1_000)))

test.each([0, 5, 6])(
  'once a look is dear the next ones begin where all was done, for a while: after %i failures',
  async (failures) => {
    const floors = dearFloors()
    await waiting([{ id: 'first', dueInS: -20 }])
    expect((await open(failures, 0, 10, floors)).map(({ id }) => id)).toEqual(['first'])
    await waiting([
      { id: 'late', dueInS: -30 },
      { id: 'new', dueInS: -1 },
    ])
    expect((await open(failures, 60_000, 10, floors)).map(({ id }) => id)).toEqual(['new'])
    floors.pass(30_000)
    expect((await open(failures, 60_000, 10, floors)).map(({ id }) => id)).toEqual(['late'])
  },
)

test('what is committed some seconds after its time is found, also once looks are dear', async () => {
  const floors = dearFloors()
  await waiting([{ id: 'first', dueInS: -1 }])
  expect((await open(0, 0, 10, floors)).map(({ id }) => id)).toEqual(['first'])
  await waiting([{ id: 'slow', dueInS: -8 }])
  expect((await open(0, 60_000, 10, floors)).map(({ id }) => id)).toEqual(['slow'])
})

test('a lane of which not all was looked through is due when it is, though nothing else is', async () => {
  const floors = dearFloors()
  await waiting([{ id: 'first', dueInS: -20 }])
  await open(0, 0, 10, floors)
  await sql`delete from due_deliveries`
  await waiting([{ id: 'late', dueInS: -30 }])
  expect(await next(floors)).toEqual([30])
  floors.pass(10_000)
  expect(await next(floors)).toEqual([20])
  await waiting([{ id: 'soon', dueInS: 5 }])
  expect(await next(floors)).toEqual([5])
  floors.pass(20_000)
  expect(await next(floors)).toEqual([0])
})

test.each([
  ['is active', [20], 'active', null],
  ['paused itself', [20], 'paused', 'consecutive_failures'],
  ['is paused by hand', [], 'paused', null],
  ['is disabled', [0], 'disabled', 'gone'],
])('of one that %s the next is due in %j s', async (_, seconds, status, reason) => {
  await waiting([{ id: 'next', dueInS: 20 }])
  onTestFinished(async () => {
    await sql`update subscriptions set status = 'active', disabled_reason = null`
  })
  await sql`update subscriptions set status = ${status}, disabled_reason = ${reason}`
  expect(await next(createDueFloors())).toEqual(seconds)
})
