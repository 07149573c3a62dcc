import type { Sql } from '@app/shared/database/database.ts'
import { firstIdAt, newId } from '@app/shared/values/ids.ts'
import { untilSomebodyWaits } from '@app/test/lock-waits.ts'
import { until } from '@app/test/until.ts'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { deleteWebhookSubscription } from '../subscriptions/delete-webhook-subscription.ts'
import { disableWebhookSubscription } from '../subscriptions/disable-webhook-subscription.ts'
import type { TestWebhooks } from '../testing/app.ts'
import { newAttempt } from '../testing/new-attempt.ts'
import type { Receiver } from '../testing/receiver.ts'
import { webhooksAndReceiver } from '../testing/webhooks-and-receiver.ts'
import { recordWithin, toRow } from '../fan-out/record-events.ts'
import { createExpirySweep, giveUp } from './give-up.ts'
import { createLaneHealth } from './lane-health.ts'
import { lockLines } from './lines.ts'
import type { Outcome } from './outcome.ts'
import { recordAttempts } from './record-attempts.ts'

let webhooks: TestWebhooks
let receiver: Receiver
let id: string

const both = webhooksAndReceiver()
beforeAll(() => void ({ webhooks, receiver } = both))
beforeEach(async () => {
  await webhooks.clear()
  receiver.got.length = 0
  id = (await webhooks.subscribe({ url: receiver.url })).id
  await webhooks.sql`update subscriptions set status = 'paused'`
})

const inOneLine = { line: 'line', firstDue: 'now()', othersDue: 'null' }
const inAnHour = { line: null, firstDue: `now() + interval '1 hour'`, othersDue: `now() + interval '1 hour'` }

/** More open deliveries than one round gives up. */
async function holdMany({ line, firstDue, othersDue }: typeof inOneLine | typeof inAnHour) {
  await webhooks.sql`insert into lanes (id, grp) values (${id}, ${webhooks.organizationId})`
  await webhooks.sql`
    insert into deliveries (id, organization_id, subscription_id, event_type, event_id)
    select 'wbd_7' || lpad(n::text, 25, '0'), ${webhooks.organizationId}, ${id}, 'message.received', 'evt_' || n
    from generate_series(1, 4050) n
  `
  await webhooks.sql`
    insert into due_deliveries (id, organization_id, subscription_id, event_at, event_id, event_type, line, due_at)
    select 'wbd_7' || lpad(n::text, 25, '0'), ${webhooks.organizationId}, ${id}, now(), 'evt_' || n, 'message.received',
      ${line}, case when n = 1 then ${webhooks.sql.unsafe(firstDue)} else ${webhooks.sql.unsafe(othersDue)} end
    from generate_series(1, 4050) n order by n
  `
}

test.each([
  ['wait in a customer’s line', inOneLine],
  ['are to be tried again in an hour', inAnHour],
])('a disabled subscription keeps none of 4,050 deliveries that %s', async (_, held) => {
  await holdMany(held)
  await webhooks.ask(disableWebhookSubscription, { body: { subscription_id: id } })
  await until(async () => {
    const [row] = await webhooks.sql`
      select (select count(*)::int from due_deliveries) as open, (select count(*)::int from dead_deliveries) as dead
    `
    expect(row).toEqual({ open: 0, dead: 4_050 })
  })
})

test('a statement gives up 2,000 of a subscription', async () => {
  await holdMany(inAnHour)
  expect(await webhooks.sql.begin((tx) => giveUp(tx, id, 'subscription_disabled'))).toBe(2_000)
})

test('what is given up is not looked up among all deliveries of three months', async () => {
  await webhooks.emit({}, {}, {})
  await until(async () => expect(await webhooks.deliveries({ status: 'pending' })).toHaveLength(3))
  await webhooks.sql.begin(async (tx) => {
    const scans = async () => {
      const [row] = await tx<{ scans: number }[]>`
        select sum(pg_stat_get_xact_numscans(indexrelid))::int as scans
        from pg_inherits join pg_index on indrelid = inhrelid where inhparent = 'deliveries'::regclass
      `
      return row?.scans
    }
    const before = await scans()
    expect(await giveUp(tx, id, 'subscription_disabled')).toBe(3)
    expect(await scans()).toBe(before)
  })
  expect(await webhooks.sql`select event_type from dead_deliveries where event_type is null`).toEqual([])
})

test('what a round has left of a customer’s line goes out, in its order, if the subscription is enabled then', async () => {
  const events = await webhooks.emit(...Array.from({ length: 5 }, () => ({ line: 'line' })))
  await until(async () => expect(await webhooks.deliveries({ status: 'pending' })).toHaveLength(5))
  await webhooks.sql.begin((tx) => giveUp(tx, id, 'subscription_disabled', 3))
  await webhooks.sql`update subscriptions set status = 'active'`
  await webhooks.hurry()
  await until(async () => expect(await webhooks.deliveries({ status: 'succeeded' })).toHaveLength(2))
  expect(receiver.got.map(({ headers }) => headers['x-svc-event-id'])).toEqual(events.slice(0, 2))
  expect(await webhooks.deliveries({ status: 'dead' })).toHaveLength(3)
})

test('what is just being put behind a delivery of a customer’s line goes out, if the subscription is disabled and enabled meanwhile', async () => {
  const { sql } = webhooks
  // In front of the line of another subscription stands another delivery.
  await webhooks.subscribe({ url: 'https://127.0.0.1:9/', events: ['contact.created', 'message.received'] })
  await sql`update subscriptions set status = 'paused'`
  await webhooks.emit({ line: 'line', type: 'contact.created' })
  await until(async () => expect(await webhooks.deliveries({ status: 'pending' })).toHaveLength(1))
  const [, first] = await webhooks.emit({ line: 'another' }, { line: 'line' }, { line: 'line' })
  await until(async () => expect(await webhooks.deliveries({ status: 'pending' })).toHaveLength(7))
  const second = newId('evt')
  const headers = { organization: webhooks.organizationId, event: second, type: 'message.received', line: 'line' }
  const row = toRow({
    subject: 'event.platform.something-happened',
    headers: { ...headers, source: 'svc', at: new Date().toISOString() },
    payload: Buffer.from('{}'),
  })
  await sql.begin(async (tx) => {
    await recordWithin(tx, row ? [row] : [])
    await sql.begin((other) => giveUp(other, id, 'subscription_disabled'))
  })
  await sql`update subscriptions set status = 'active'`
  await webhooks.hurry()
  await until(
    () => expect(receiver.got.map(({ headers: got }) => got['x-svc-event-id'])).toEqual([first, second]),
    5_000,
  )
})

test('what is at its endpoint just now is not given up', async () => {
  const { sql } = webhooks
  await webhooks.emit({}, {})
  await until(async () => expect(await webhooks.deliveries({ status: 'pending' })).toHaveLength(2))
  const begun = await sql`
    update due_deliveries set begun_at = now(), attempts = 1
    where id = (select id from due_deliveries order by seq limit 1) returning id
  `
  expect(await sql.begin((tx) => giveUp(tx, id, 'subscription_disabled'))).toBe(1)
  expect(await sql`select id from due_deliveries`).toEqual([...begun])
})

test.each([
  [
    'with its subscription',
    'subscription_deleted',
    () => webhooks.sql.begin((tx) => giveUp(tx, id, 'subscription_deleted')),
  ],
  ['for its age', 'expired', () => createExpirySweep(webhooks)(webhooks.sql)],
])('an attempt that its process did not survive counts, when its delivery is given up %s', async (_, why, end) => {
  await webhooks.sql`update subscriptions set created_at = created_at - interval '9 days'`
  await webhooks.emit({ at: new Date(Date.now() - 8 * 24 * 60 * 60 * 1000) })
  const [delivery] = await until(async () => {
    const held = await webhooks.deliveries({ status: 'pending' })
    expect(held).toHaveLength(1)
    return held
  })
  await webhooks.sql`update due_deliveries set attempts = 1, begun_at = now() - interval '30 s'`
  expect(await end()).toBe(1)
  expect(await webhooks.delivery(delivery?.id ?? '')).toMatchObject({
    status: 'dead',
    error_code: why,
    attempt_count: 1,
    last_attempt_at: expect.any(String),
  })
})

describe('what is heard of an attempt late, when another holder has begun a later one,', () => {
  const success = { startedAtMs: Date.now(), durationMs: 1, status: 200, snippet: null, error: null }
  let due: { id: string; eventId: string }

  async function heardLate(outcome: Outcome | null) {
    const { sql, organizationId } = webhooks
    const lane = { id, group: organizationId, arrivals: '1', heldUntil: '-infinity', failures: 0, pacedMs: 0 }
    const item = newAttempt({ ...due, laneId: id, organizationId, url: receiver.url, payload: null })
    await sql.begin((tx) => recordAttempts(tx, [{ item, lane, outcome }], createLaneHealth(), async () => {}))
  }

  beforeEach(async () => {
    await webhooks.emit({})
    await until(async () => {
      const [delivery] = await webhooks.deliveries({ status: 'pending' })
      expect(delivery).toBeDefined()
      due = { id: delivery?.id ?? '', eventId: delivery?.event_id ?? '' }
    })
    await webhooks.sql`update due_deliveries set begun_at = now(), attempts = 2`
  })

  test('changes nothing of that one, unless it was accepted', async () => {
    const read = () => webhooks.sql`select attempts, begun_at, tried, due_at from due_deliveries`
    const before = await read()
    await heardLate({ kind: 'failed', attempt: { ...success, status: 500 } })
    await heardLate(null)
    expect(await read()).toEqual([...before])
  })

  test('takes the place of its interruption', async () => {
    const { sql } = webhooks
    await sql`
      insert into attempts (delivery_id, number, started_at, error_code, error_message)
      select id, 1, now(), 'interrupted', 'Nobody knows.' from due_deliveries
    `
    const first = () => sql`
      select number, response_status, duration_ms, error_code, error_message from attempts
      where delivery_id = ${due.id} and number = 1
    `
    const told = { number: 1, responseStatus: 200, durationMs: 1, errorCode: null, errorMessage: null }
    await heardLate({ kind: 'succeeded', attempt: success })
    expect(await first()).toEqual([told])
    // Once known it stays.
    await heardLate({ kind: 'failed', attempt: { ...success, status: 500 } })
    expect(await first()).toEqual([told])
  })
})

test('a subscription is deleted while its attempts begin: neither waits for the other in a circle', async () => {
  await webhooks.emit({})
  await until(async () => expect(await webhooks.deliveries({ status: 'pending' })).toHaveLength(1))
  const { sql } = webhooks
  const begun = sql.begin(async (tx) => {
    // As a claim does: first the lane, then its deliveries.
    await tx`select id from lanes where id = ${id} for update`
    const deleted = webhooks.ask(deleteWebhookSubscription, { params: { id } })
    await untilSomebodyWaits(sql)
    await tx`update due_deliveries set begun_at = now() where subscription_id = ${id}`
    return { deleted }
  })
  await (
    await begun
  ).deleted
  expect(await sql`select id from subscriptions where id = ${id}`).toHaveLength(0)
})

test('a subscription is deleted while a replay of it is counted: neither waits for the other in a circle', async () => {
  const { sql, organizationId } = webhooks
  const replay = newId('rpl')
  await sql`
    insert into replays (id, organization_id, subscription_id, source, position, end_id, matched, created_at, finished_at)
    values (${replay}, ${organizationId}, ${id}, 'dead', '', '', 2, now(), now())
  `
  await webhooks.emit({}, {})
  await until(async () => expect(await webhooks.deliveries({ status: 'pending' })).toHaveLength(2))
  await sql`update due_deliveries set replay_id = ${replay} where id = (select min(id) from due_deliveries)`
  await sql.begin(async (tx) => {
    // As a settlement does: first the replay, then the lane.
    await tx`select id from replays where id = ${replay} for no key update`
    await webhooks.ask(deleteWebhookSubscription, { params: { id } })
    await tx`select id from lanes where id = ${id} for update`
    expect(await sql`select error_code from dead_deliveries`).toEqual([{ errorCode: 'subscription_deleted' }])
  })
  await until(async () => expect(await sql`select failed from replays`).toEqual([{ failed: 1 }]))
  expect(await webhooks.deliveries({ status: 'dead' })).toHaveLength(2)
})

test('attempts begin beside deliveries that somebody else has in hand, and do not wait for them', async () => {
  const { sql } = webhooks
  await webhooks.emit({}, {})
  await until(async () => expect(await webhooks.deliveries({ status: 'pending' })).toHaveLength(2))
  await sql.begin(async (tx) => {
    await tx`select id from due_deliveries where subscription_id = ${id} order by id limit 1 for update`
    await sql`update subscriptions set status = 'active' where id = ${id}`
    await sql`update lanes set due_at = now(), arrivals = arrivals + 1 where id = ${id}`
    webhooks.attempts.wake()
    await until(() => expect(receiver.got).toHaveLength(1))
  })
  await until(() => expect(receiver.got).toHaveLength(2))
})

test('the jobs of deliveries whose time is over are taken in one order', async () => {
  const { sql, organizationId } = webhooks
  const replays = Array.from({ length: 8 }, (_, n) => `rpl_${n}`)
  await sql`
    insert into replays (id, organization_id, subscription_id, source, position, end_id, matched, created_at, finished_at)
    select r, ${organizationId}, ${id}, 'dead', '', '', 1, now(), now() from unnest(${replays}::text[]) r
  `
  await sql`
    insert into due_deliveries (id, organization_id, subscription_id, event_at, event_id, event_type, due_at, replay_id)
    select ${firstIdAt('wbd', new Date(Date.now() - 8 * 24 * 60 * 60 * 1000))} || r, ${organizationId}, ${id}, now(), 'evt_1', 'message.received',
      now(), r from unnest(${replays}::text[]) r
  `
  // As with many of them: else the statement that counts may come upon them in this order by itself.
  const begin = (work: Parameters<Sql['begin']>[1]) =>
    sql.begin(async (tx) => {
      await tx`set local enable_sort = off`
      return work(tx)
    })
  const { sweeping, free } = await sql.begin(async (tx) => {
    await tx`select from replays where id = 'rpl_0' for no key update`
    const swept = createExpirySweep(webhooks)({ begin } as Sql)
    await untilSomebodyWaits(sql)
    const others = await sql`select id from replays where id > 'rpl_0' for no key update skip locked`
    return { sweeping: swept, free: others.length }
  })
  expect(await sweeping).toBe(8)
  expect(free).toBe(7)
  expect(await sql`select sum(failed)::int as failed from replays`).toEqual([{ failed: 8 }])
})

test('what is begun while the deliveries whose time is over are looked for is not given up', async () => {
  const { sql, organizationId } = webhooks
  const old = firstIdAt('wbd', new Date(Date.now() - 8 * 24 * 60 * 60 * 1000))
  await sql`
    insert into due_deliveries (id, organization_id, subscription_id, event_at, event_id, event_type, line, due_at)
    values (${old}, ${organizationId}, ${id}, now(), 'evt_1', 'message.received', 'line', now())
  `
  const { sweeping } = await sql.begin(async (tx) => {
    await lockLines(tx, [{ line: 'line' }])
    const swept = createExpirySweep(webhooks)(sql)
    await untilSomebodyWaits(sql)
    await tx`update due_deliveries set attempts = 1, begun_at = now()`
    return { sweeping: swept }
  })
  expect(await sweeping).toBe(0)
  expect(await sql`select id from due_deliveries`).toEqual([{ id: old }])
})
