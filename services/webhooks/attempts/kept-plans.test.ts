import { beginSurely } from '@app/shared/database/begin-surely.ts'
import { openDatabase, type Sql } from '@app/shared/database/database.ts'
import { findDueGroups } from '@app/shared/mailbox/claim-lanes.ts'
import type { Lane } from '@app/shared/mailbox/lanes.ts'
import { createTestDatabase } from '@app/test/database.ts'
import { keptPlan, planIn } from '@app/test/kept-plan.ts'
import { newId } from '@app/shared/values/ids.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { recordEvents, toRow } from '../fan-out/record-events.ts'
import { pageOf } from '../deliveries/list-webhook-deliveries.ts'
import { createLaneHealth } from './lane-health.ts'
import { createDueFloors } from './due-floors.ts'
import { nextDue, openAttempts } from './open-attempts.ts'
import { createPayloads } from './payloads.ts'
import { recordAttempts } from './record-attempts.ts'

/**
 * A queue is empty most of the time, and is vacuumed then. What Postgres plans for it afterwards it keeps while it fills,
 * perhaps for a minute: a delivery must be looked up by its key all the same.
 */
let database: Awaited<ReturnType<typeof createTestDatabase>>
let sql: Sql
const [organizationId, laneId] = [newId('org'), newId('wbs')]

beforeAll(async () => {
  database = await createTestDatabase('webhooks')
  // One connection, whose statements can be asked for.
  sql = openDatabase(database.url, 'webhooks', { max: 1 })
  await sql`
    insert into subscriptions (id, organization_id, url, events, created_at, updated_at)
    values (${laneId}, ${organizationId}, 'https://example.com/', '{message.sent}', now() - interval '1 hour', now())
  `
  await deliver()
  await sql`vacuum (analyze) due_deliveries`
  for (let n = 0; n < 12; n++) await deliver()
})
afterAll(async () => {
  await sql.end()
  await database.drop()
})

/** One event, from its fan-out to the record of a delivery. */
async function deliver() {
  const headers = {
    organization: organizationId,
    event: newId('evt'),
    type: 'message.sent',
    at: new Date().toISOString(),
  }
  const row = toRow({ subject: 'event.messaging.message-sent', headers, payload: Buffer.from('{}') })
  await recordEvents(sql, row ? [row] : [])
  const lane: Lane = { id: laneId, group: organizationId, arrivals: '0', heldUntil: '', failures: 0, pacedMs: 0 }
  const items = await beginSurely(sql, (tx) =>
    openAttempts(tx, createPayloads(), createDueFloors(), [{ lane, free: 1, fresh: true, heldMs: 0 }]),
  )
  expect(items).toHaveLength(1)
  const attempt = { startedAtMs: Date.now(), durationMs: 1, status: 200, snippet: '', error: null }
  const done = items.map((item) => ({ item, lane, outcome: { kind: 'succeeded', attempt } as const }))
  await beginSurely(sql, (tx) => recordAttempts(tx, done, createLaneHealth(), async () => {}))
}

test.each([
  ['begins', 'update due_deliveries d set attempts'],
  ['is recorded', 'delete from due_deliveries d using o'],
])('an attempt %s by the key of its delivery, although the table was empty', async (_, text) => {
  const [kept] = await sql<{ name: string; genericPlans: string; parameters: number }[]>`
    select name, generic_plans, cardinality(parameter_types) as parameters from pg_prepared_statements where strpos(statement, ${text}) > 0
  `
  expect(Number(kept?.genericPlans)).toBeGreaterThan(0)
  const given = ["'[]'", ...Array.from({ length: (kept?.parameters ?? 1) - 1 }, () => '25')].join()
  const plan = JSON.stringify(await sql.unsafe(`explain (format json) execute "${kept?.name}" (${given})`))
  expect(plan).toContain('due_deliveries_pkey')
  expect(plan).not.toContain('due_deliveries_list')
  expect(readWhole(plan)).toEqual([])
  expect(scanned(plan)).toEqual([])
})

test('deliveries that end together are not compared with each other to be taken away', async () => {
  const plan = await keptPlan(sql, ['delete from due_deliveries d using o'], ["'[]'"])
  expect(plan).toMatch(/Hash Cond: .* = d\.id\)/)
})

/** Else each may be looked up with the ids of all beside its own, which are sorted for it: 40 µs an attempt instead of 17. */
test('deliveries that begin together are looked up once', async () => {
  const plan = await keptPlan(sql, ['update due_deliveries d set attempts'], ["'[]'", ...Array<string>(9).fill('25')])
  expect(plan).toMatch(
    /Update on due_deliveries d .*\n.*InitPlan.*\n.*CTE Scan on free.*\n +->  (Bitmap Heap|Index) Scan/,
  )
})

/** A failure took 100 µs instead of 30 to record, in a batch of 256. */
test('deliveries that end, or go on, together are not each looked up with the ids of all', async () => {
  const plan = await keptPlan(sql, ['delete from due_deliveries d using o'], ["'[]'"])
  expect(plan.match(/Index Cond: \(id = ANY/g)).toHaveLength(3)
  expect(plan).not.toMatch(/Index Cond: .*AND \(id = ANY/)
})

/** With the plan for a queue that was empty all that is open would be read for each: 100 times 100,000 in an outage. */
test('how each delivery of a page stands is looked up by its key, although nothing was open', async () => {
  await sql`vacuum (analyze) due_deliveries, dead_deliveries`
  const plan = planIn(await sql`explain ${pageOf(sql, organizationId, {}, null, 100)}`)
  expect(plan).toMatch(/using due_deliveries_pkey on due_deliveries\b.*\n +Index Cond: \(id = d\.id\)/)
  expect(plan).toMatch(/using dead_deliveries_pkey on dead_deliveries\b.*\n +Index Cond: \(id = d\.id\)/)
})

/** Else a subscription that is behind falls further behind: to plan how an attempt is begun takes longer than all that it does. */
test('no plan is made when more and more waits', async () => {
  const made = () => sql`
    select name, custom_plans from pg_prepared_statements
    where statement ~ 'update due_deliveries d set attempts|delete from due_deliveries d using o' and strpos(statement, 'pg_prepared') = 0
  `
  const before = await made()
  for (const thousands of [1, 20]) {
    await sql`
      insert into due_deliveries (id, organization_id, subscription_id, event_at, event_id, due_at)
      select 'wbd_' || ${thousands} || n, ${organizationId}, ${laneId}, now(), 'evt_' || n, now() - interval '1 hour' + n * interval '1 ms'
      from generate_series(1, 1000 * ${thousands}) n
    `
    await sql`analyze due_deliveries`
    for (let n = 0; n < 8; n++) await deliver()
  }
  expect(before).toHaveLength(2)
  expect(await made()).toEqual(before)
})

/** Whatever the planner expects of a table: without its key, which no test needs any more, no other index is taken for one. */
test.each(['due_deliveries', 'dead_deliveries'])('in %s no index but the key leads to an id', async (table) => {
  await sql.unsafe(`alter table ${table} drop constraint ${table}_pkey`)
  const plan = JSON.stringify(await sql.unsafe(`explain (format json) select from ${table} where id = 'wbd_1'`))
  expect(plan).toContain('"Filter":"(id = ')
  expect(plan).not.toContain('Index Cond')
})

/** Indexes that a plan reads from end to end. */
const readWhole = (plan: string) =>
  [...plan.matchAll(/"Index Name":"(\w+)"([^{}]*)/g)].flatMap(([, index, rest = '']) =>
    rest.includes('"Index Cond"') ? [] : index,
  )

/** Tables that a plan reads in sequence. */
const scanned = (plan: string) =>
  [...plan.matchAll(/"Seq Scan"[^{}]*?"Relation Name":"(\w+)"/g)].map(([, table]) => table)

/** Else a plan is made at each delivery, which costs ten times what it does. */
test('what is due next is asked for by a plan that is kept, of one lane or several', async () => {
  for (let n = 0; n < 8; n++)
    await sql.begin((tx) =>
      nextDue(
        tx,
        createDueFloors(),
        Array.from({ length: 1 + (n % 3) }, () => laneId),
      ),
    )
  const [kept] = await sql<{ made: number }[]>`
    select custom_plans::int as made from pg_prepared_statements where strpos(statement, 'as wait_ms') > 0 and strpos(statement, 'pg_prepared') = 0
  `
  expect(kept).toEqual({ made: 5 })
})

test('lanes that are due are found without those that wait', async () => {
  await sql`vacuum (analyze) lanes`
  expect(await findDueGroups(sql, 'lanes')).toMatchObject({ groups: [organizationId], last: '' })
  const plan = await keptPlan(sql, ['from "lanes"', 'coalesce'], ['null', '256'])
  expect(plan).toContain('using lanes_soonest on lanes')
  expect(plan).not.toContain('Sort')
})
