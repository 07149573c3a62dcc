import { createTestDatabase, type TestDatabase } from '@app/test/database.ts'
import { keptPlan, planIn } from '@app/test/kept-plan.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { findDueGroups } from '@app/shared/mailbox/claim-lanes.ts'
import { createItemFloors } from './callbacks/item-floors.ts'
import { takeItems } from './callbacks/waiting-items.ts'
import { sweepMediaUploads } from './media/delete-media.ts'
import { retentionOf } from './messages/delete-old-messages.ts'
import { isBegun } from './senders/put-sender.ts'
import { sweepLetOutLanes } from './sends/sweep-lanes.ts'

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
    expect(planIn(lines)).toContain(`using ${table}_pkey on ${table}`)
  },
)

test('the items of a lane are found by it, although there were none, by a plan that is kept', async () => {
  const { admin, sql } = database
  await admin.unsafe('vacuum (analyze) messaging.callback_items')
  const lane = { id: 'cnv_1', group: 'org_1', arrivals: '0', heldUntil: '', failures: 0, pacedMs: 0 }
  await sql.begin(async (tx) => {
    for (let n = 0; n < 7; n++) await takeItems(tx, createItemFloors(), [{ lane, free: 1, fresh: true, heldMs: 0 }])
    const [kept] = await tx<{ made: number }[]>`
      select custom_plans::int as made from pg_prepared_statements where strpos(statement, 'from callback_items where') > 0 and strpos(statement, 'pg_prepared') = 0
    `
    expect(kept?.made).toBe(5)
    const plan = await keptPlan(tx, ['from callback_items where'], ["array['cnv_1']", 'array[0]', '64', '262144'])
    expect(plan).toMatch(/using callback_items_lane on callback_items.*\n +Index Cond: .*ROW\(lane, seq\) >= /)
  })
})

test.each([
  ['media_uploads', sweepMediaUploads, 'using media_uploads_age on media_uploads'],
  ['send_lanes', sweepLetOutLanes, 'using send_lanes_let_out on send_lanes'],
])('a sweep of %s does not read the whole table', async (table, sweep, index) => {
  const session = await database.sql.reserve()
  await sweep(session)
  const plan = await keptPlan(session, [`delete from ${table}`])
  session.release()
  expect(plan).toContain(index)
})

test('calls that have begun are looked for among the lanes of their number, and in the sends of these', async () => {
  const { admin, sql } = database
  for (const table of ['send_lanes', 'sends']) await admin.unsafe(`vacuum (analyze) messaging.${table}`)
  const session = await sql.reserve()
  expect(await isBegun(session, { organizationId: 'org_1', phoneNumberId: '106540352242922' })).toBe(false)
  const plan = await keptPlan(session, ['as begun'], ["array['106540352242922']", "'org_1'"])
  session.release()
  expect(plan).toContain('using send_lanes_due on send_lanes')
  expect(plan).toMatch(/using sends_head on sends.*\n +Index Cond: \(lane = l.id\)/)
})

test.each(['send_lanes', 'callback_lanes', 'media_lanes'])(
  'lanes of %s that are due are found without those that wait',
  async (table) => {
    const { admin, sql } = database
    await admin.unsafe(`vacuum (analyze) messaging.${table}`)
    const session = await sql.reserve()
    expect(await findDueGroups(session, table)).toMatchObject({ groups: [], last: '' })
    const plan = await keptPlan(session, [`from "${table}"`, 'coalesce'], ['null', '256'])
    session.release()
    expect(plan).toContain(`using ${table}_soonest on ${table}`)
    expect(plan).not.toContain('Sort')
  },
)

test('whose a number was is found by it, and what an organization was told last without its other numbers', async () => {
  const { admin, sql } = database
  await admin.unsafe('vacuum (analyze) messaging.senders')
  const owners = await sql`
    explain select from senders where phone_number_id = '1' and organization_id <> 'org_1' and owned_since >= 'epoch'
  `
  expect(planIn(owners)).toContain('using senders_number on senders')
  const told = planIn(await sql`explain ${retentionOf(sql, sql`'org_1'`)}`)
  expect(told).toContain('using senders_told on senders')
  expect(told).not.toContain('Sort')
})
