import { firstIdAt, newId } from '@app/shared/values/ids.ts'
import { ownSession } from '@app/shared/database/own-session.ts'
import { keepPartitions } from '@app/shared/database/partitions.ts'
import { untilSomebodyWaits } from '@app/test/lock-waits.ts'
import { until } from '@app/test/until.ts'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { type TestWebhooks, testWebhooks } from '../testing/app.ts'
import { openDeliveries } from './open-deliveries.ts'
import { partitions, sweepDead, sweepLanes, sweepReplays } from './retention.ts'

let webhooks: TestWebhooks
beforeAll(async () => {
  webhooks = await testWebhooks()
})
afterAll(() => webhooks.close())

const dayMs = 24 * 60 * 60 * 1000

test('a delivery that was given up is dead for as long as it is kept, also where a backup has kept it longer', async () => {
  const { sql, organizationId } = webhooks
  // The service's own housekeeping goes by today, so it must be over.
  const session = ownSession(sql)
  onTestFinished(() => session.end())
  for (const work of ['partitions', 'sweeps']) {
    const alone = () => session`select pg_try_advisory_lock(hashtext(${`housekeeping webhooks ${work}`})) as mine`
    await until(async () => expect(await alone()).toEqual([{ mine: true }]))
  }
  // Deliveries of a week go together.
  const oldestWeek = Math.floor((Math.floor(Date.now() / dayMs) - 90) / 7) * 7 * dayMs
  const keepAll = async (now: number) => {
    for (const table of partitions) await keepPartitions(sql, table, now)
  }
  const statuses = async () => (await webhooks.deliveries()).map(({ id, status }) => [id, status])
  await keepAll(oldestWeek)
  const ids = [oldestWeek - 1, oldestWeek].map((at) => firstIdAt('wbd', new Date(at)))
  for (const table of ['deliveries', 'dead_deliveries']) {
    await sql`
      insert into ${sql(table)} (id, organization_id, subscription_id, event_type ${table === 'deliveries' ? sql`, event_id` : sql``})
      select id, ${organizationId}, 'wbs_x', 'message.received' ${table === 'deliveries' ? sql`, id` : sql``}
      from unnest(${ids}::text[]) id
    `
  }
  await sql`insert into delivered_types (organization_id, event_type) values (${organizationId}, 'message.received')`
  const [over, kept] = ids.map((id) => [id, 'dead'])
  const backup = ownSession(sql)
  onTestFinished(() => backup.end())
  await backup`begin`
  await backup`lock table deliveries in access share mode`
  await expect(keepAll(Date.now())).rejects.toThrow('lock timeout')
  expect(await sweepDead(sql)).toBe(0)
  expect(await statuses()).toEqual([kept, over])
  await backup`rollback`

  await keepAll(Date.now())
  expect(await sweepDead(sql)).toBe(1)
  expect(await statuses()).toEqual([kept])
})

test('events that come late, to a service that was away for weeks, stand in partitions, and go with them', async () => {
  const { sql, organizationId } = webhooks
  const day = Math.floor(Date.now() / dayMs)
  for (const late of [1, 2, 3, 4]) {
    const at = new Date((day - late) * dayMs)
    await sql`
      insert into events (at, organization_id, event_id, type, source, payload)
      values (${at}, ${organizationId}, ${`late ${late}`}, 'message.received', 'svc', '{}')
    `
    await sql`
      insert into deliveries (id, organization_id, subscription_id, event_type, event_id)
      values (${firstIdAt('wbd', at)}, ${organizationId}, 'wbs_late', 'message.received', ${`late ${late}`})
    `
  }
  const lost = await sql`
    select event_id from events_default where starts_with(event_id, 'late')
    union all select id from deliveries_default where subscription_id = 'wbs_late'
  `
  expect([...lost]).toEqual([])
})

test('a replay is kept as long as the last of its deliveries, however long ago it was asked for', async () => {
  const { sql, organizationId } = webhooks
  const asked = new Date(Date.now() - 100 * dayMs)
  const ended = { running: null, recent: new Date(Date.now() - 80 * dayMs), over: new Date(Date.now() - 91 * dayMs) }
  for (const [n, at] of Object.values(ended).entries()) {
    await sql`
      insert into replays (id, organization_id, subscription_id, source, position, end_id, matched, created_at, finished_at, due_at)
      values (${`${firstIdAt('rpl', asked)}${n}`}, ${organizationId}, ${`wbs_${n}`}, 'dead', '', '', 1, ${asked}, ${at}, 'infinity')
    `
  }
  expect(await sweepReplays(sql)).toBe(1)
  const kept = await sql`select subscription_id from replays where organization_id = ${organizationId} order by id`
  expect(kept.map(({ subscriptionId }) => subscriptionId)).toEqual(['wbs_0', 'wbs_1'])
})

test('lanes are swept away of deleted subscriptions alone, and not while something waits in them', async () => {
  const { sql, organizationId } = webhooks
  await sql`truncate lanes, due_deliveries`
  const { id: alive } = await webhooks.subscribe({ url: 'https://127.0.0.1:9/' })
  for (const id of [alive, 'wbs_over', 'wbs_open'])
    await sql`insert into lanes (id, grp) values (${id}, ${organizationId})`
  await sql`
    insert into due_deliveries (id, organization_id, subscription_id, event_at, event_id)
    values ('wbd_open', ${organizationId}, 'wbs_open', now(), 'evt_open')
  `
  expect(await sweepLanes(sql)).toBe(1)
  const kept = await sql`select id from lanes order by id = ${alive}`
  expect(kept.map(({ id }) => id)).toEqual(['wbs_open', alive])
})

test('what comes into the lane of a deleted subscription while that is swept away is given up, and not left behind', async () => {
  const { sql, organizationId } = webhooks
  const [id, subscriptionId] = [newId('wbd'), newId('wbs')]
  await sql`insert into lanes (id, grp) values (${subscriptionId}, ${organizationId})`
  const delivery = {
    id,
    organizationId,
    subscriptionId,
    eventType: 'message.received',
    eventId: 'evt_1',
    eventAt: new Date(),
  }
  const { sweeping } = await sql.begin(async (tx) => {
    await openDeliveries(tx, [delivery])
    const swept = sweepLanes(sql)
    await untilSomebodyWaits(sql)
    return { sweeping: swept }
  })
  await sweeping
  webhooks.attempts.wake()
  await until(async () => {
    const dead = await sql`select error_code from dead_deliveries where id = ${id}`
    expect(dead).toEqual([{ errorCode: 'subscription_deleted' }])
  })
})
