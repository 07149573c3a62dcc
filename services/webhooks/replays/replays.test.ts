import { systemCaller } from '@app/shared/bus/ask.ts'
import { firstIdAt, newId, newIdAt, timeOf } from '@app/shared/values/ids.ts'
import { toProblem } from '@app/shared/api/problem.ts'
import { lockWaits, untilSomebodyWaits } from '@app/test/lock-waits.ts'
import { until } from '@app/test/until.ts'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { replayWebhookDelivery } from '../deliveries/replay-webhook-delivery.ts'
import { deleteWebhookSubscription } from '../subscriptions/delete-webhook-subscription.ts'
import { disableWebhookSubscription } from '../subscriptions/disable-webhook-subscription.ts'
import { enableWebhookSubscription } from '../subscriptions/enable-webhook-subscription.ts'
import { updateWebhookSubscription } from '../subscriptions/update-webhook-subscription.ts'
import type { TestWebhooks } from '../testing/app.ts'
import { answer, type Receiver } from '../testing/receiver.ts'
import { webhooksAndReceiver } from '../testing/webhooks-and-receiver.ts'
import { cancelWebhookReplay } from './cancel-webhook-replay.ts'
import { createWebhookReplay } from './create-webhook-replay.ts'
import { shareOf, startReplays } from './enqueue-replays.ts'
import { getWebhookReplay } from './get-webhook-replay.ts'
import { listWebhookReplays } from './list-webhook-replays.ts'

let webhooks: TestWebhooks
let receiver: Receiver
let id: string

const both = webhooksAndReceiver()
beforeAll(() => void ({ webhooks, receiver } = both))
beforeEach(async () => {
  await webhooks.clear()
  receiver.got.length = 0
  receiver.respondWith(answer(200))
  id = (await webhooks.subscribe({ url: receiver.url, events: ['message.received', 'contact.created'] })).id
})

type Body = Parameters<typeof createWebhookReplay>[1]['body']
const hourAgo = () => new Date(Date.now() - 3_600_000).toISOString()
const replayOne = (delivery = '', caller = webhooks.caller) =>
  webhooks.ask(replayWebhookDelivery, { params: { id: delivery } }, caller)
const replayMany = (body: Partial<Body> = {}, caller = webhooks.caller) =>
  webhooks.ask(createWebhookReplay, { body: { subscription_id: id, since: hourAgo(), ...body } }, caller)
const replay = (replayId: string | null, caller = webhooks.caller) =>
  webhooks.ask(getWebhookReplay, { params: { id: replayId ?? '' } }, caller)
const cancel = (replayId: string | null, caller = webhooks.caller) =>
  webhooks.ask(cancelWebhookReplay, { params: { id: replayId ?? '' } }, caller)
const pause = (status: 'active' | 'paused') =>
  webhooks.ask(updateWebhookSubscription, { params: { id }, body: { status } })

const failureOf = (work: Promise<unknown>) =>
  work.then(
    () => null,
    (err: unknown) => toProblem(err).failure,
  )
const gotIds = () => receiver.got.map(({ headers }) => headers['x-svc-event-id'])

/** Dead deliveries, a millisecond apart, whose payloads are kept. Oldest first. */
async function die(count: number, { type = 'message.received', ageMs = 60_000, subscription = id } = {}) {
  const { organizationId, sql } = webhooks
  const rows = Array.from({ length: count }, (_, n) => {
    const at = new Date(Date.now() - ageMs + n)
    return { id: newIdAt('wbd', at), at, event: newId('evt') }
  })
  await sql`
    with r as (
      select * from json_to_recordset(${JSON.stringify(rows)}::text::json) as r(id text, at timestamptz, event text)
    ), e as (
      insert into events (at, organization_id, event_id, type, source, payload)
      select at, ${organizationId}, event, ${type}, 'svc', '{"id":"' || event || '"}' from r
    ), d as (
      insert into deliveries (id, organization_id, subscription_id, event_type, event_id)
      select id, ${organizationId}, ${subscription}, ${type}, event from r
    )
    insert into dead_deliveries (id, organization_id, subscription_id, event_type)
    select id, ${organizationId}, ${subscription}, ${type} from r
  `
  return rows
}

const completed = (replayId: string | null) =>
  until(async () => {
    const now = await replay(replayId)
    expect(now).toMatchObject({ status: 'completed', finished_at: expect.any(String) })
    return now
  })

describe('one delivery', () => {
  test.each(['dead', 'succeeded', 'failed'])(
    'that is %s is sent again, as the same event, beginning with attempt 1',
    async (status) => {
      if (status === 'failed') receiver.respondWith(answer(429, { 'retry-after': '3600' }))
      if (status === 'dead') await die(1)
      else await webhooks.emit({ payload: '{"n":1}' })
      await until(async () => expect(await webhooks.deliveries({ status })).toHaveLength(1))
      const [original] = await webhooks.deliveries({ status })
      receiver.respondWith(answer(200))
      await webhooks.sql`update lanes set paced_until = '-infinity'`
      const before = receiver.got.length
      const made = await replayOne(original?.id)
      expect(made).toEqual({
        id: expect.stringMatching(/^wbd_/),
        object: 'webhook_delivery',
        subscription_id: id,
        replayed_from: original?.id,
        status: 'pending',
      })
      await until(() => expect(receiver.got).toHaveLength(before + 1))
      expect(receiver.got[before]?.headers).toMatchObject({
        'x-svc-event-id': original?.event_id,
        'x-svc-delivery-id': made.id,
        'x-svc-attempt': '1',
      })
      await until(async () => {
        expect(await webhooks.delivery(made.id)).toMatchObject({
          status: 'succeeded',
          replayed_from: original?.id,
          payload: expect.any(Object),
        })
      })
      expect(await webhooks.delivery(original?.id ?? '')).toMatchObject({ status, replayed_from: null })
      const again = await replayOne(made.id)
      await until(async () => expect(await webhooks.delivery(again.id)).toMatchObject({ status: 'succeeded' }))
    },
  )

  test('that waits for its first attempt, has lost its payload or its subscription, is refused', async () => {
    const [dead] = await die(1)
    expect(await failureOf(replayOne(dead?.id, systemCaller(newId('org'))))).toBe('resource_not_found')
    expect(await failureOf(replayOne(newId('wbd')))).toBe('resource_not_found')
    await pause('paused')
    await webhooks.emit({})
    await until(async () => expect(await webhooks.deliveries({ status: 'pending' })).toHaveLength(1))
    expect(await failureOf(replayOne((await webhooks.deliveries({ status: 'pending' }))[0]?.id))).toBe(
      'delivery_pending',
    )
    await webhooks.sql`delete from events where event_id = ${dead?.event ?? ''}`
    expect(await failureOf(replayOne(dead?.id))).toBe('payload_expired')
    await webhooks.sql`update subscriptions set status = 'disabled', disabled_reason = 'gone', disabled_at = now()`
    expect(await failureOf(replayOne(dead?.id))).toBe('webhook_subscription_disabled')
    await webhooks.sql`delete from subscriptions`
    expect(await failureOf(replayOne(dead?.id))).toBe('resource_not_found')
  })

  test.each([
    ['deleted', () => webhooks.ask(deleteWebhookSubscription, { params: { id } })],
    ['disabled', () => webhooks.ask(disableWebhookSubscription, { body: { subscription_id: id } })],
  ])('is given up when its subscription is %s while it is being replayed', async (state, leave) => {
    const { sql } = webhooks
    const [dead] = await die(1)
    const { replayed } = await sql.begin(async (tx) => {
      // Found by then, and not recorded yet.
      await tx`lock table delivered_types in exclusive mode`
      const going = replayOne(dead?.id)
      await untilSomebodyWaits(sql)
      await leave()
      await until(async () => expect(await sql`select from lanes where due_at is not null`).toHaveLength(0))
      return { replayed: going }
    })
    const { id: made } = await replayed
    const given = { status: 'dead', error_code: `subscription_${state}` }
    await until(async () => expect(await webhooks.delivery(made)).toMatchObject(given), 2_000)
  })

  test('to a subscription that paused itself, and whose lane sleeps, is its next probe', async () => {
    const [dead] = await die(1)
    await webhooks.sql`
      update subscriptions set status = 'paused', disabled_reason = 'consecutive_failures', paused_at = now() where id = ${id}
    `
    await webhooks.sql`insert into lanes (id, grp, failures) values (${id}, ${webhooks.organizationId}, 25)`
    await replayOne(dead?.id)
    await until(async () => expect(await webhooks.subscription(id)).toMatchObject({ status: 'active' }), 5_000)
  })

  test('is replayed once for a repeated key', async () => {
    const [dead] = await die(1)
    const caller = { ...webhooks.caller, idempotency: { key: newId('req'), fingerprint: 'f' } }
    expect(await replayOne(dead?.id, caller)).toEqual(await replayOne(dead?.id, caller))
    await until(() => expect(receiver.got).toHaveLength(1))
    expect(await webhooks.deliveries()).toHaveLength(2)
  })
})

describe('a replay of many', () => {
  test('sends each dead delivery of its range again, oldest first, and counts', async () => {
    const outside = await die(2, { ageMs: 7_200_000 })
    const dead = await die(40)
    const other = await webhooks.subscribe({ url: receiver.url })
    await die(3, { subscription: other.id })
    const made = await replayMany()
    expect(made).toMatchObject({
      object: 'webhook_replay',
      subscription_id: id,
      status: 'queued',
      matched: 40,
      enqueued: 0,
      truncated: false,
      next_since: null,
      finished_at: null,
    })
    expect(await completed(made.id)).toMatchObject({ matched: 40, enqueued: 40 })
    await until(async () => expect(await replay(made.id)).toMatchObject({ succeeded: 40, failed: 0 }))
    expect(new Set(gotIds())).toEqual(new Set(dead.map(({ event }) => event)))
    expect(receiver.got).toHaveLength(40)
    const deliveries = await webhooks.deliveries({ status: 'succeeded', subscription_id: id })
    expect(deliveries.map(({ replayed_from }) => replayed_from).toReversed()).toEqual(dead.map((row) => row.id))
    expect(await webhooks.deliveries({ status: 'dead', subscription_id: id })).toHaveLength(42)
    expect(gotIds()).not.toContain(outside[0]?.event)
  })

  test('takes the types and the range that it is told: since and not until', async () => {
    const dead = await die(10)
    await die(5, { type: 'contact.created', ageMs: 30_000 })
    const at = (n: number) => dead[n]?.at.toISOString() ?? ''
    expect(await replayMany({ since: at(2), until: at(7), dry_run: true })).toMatchObject({ id: null, matched: 5 })
    expect(await replayMany({ event_types: ['contact.created'], dry_run: true })).toMatchObject({ matched: 5 })
    expect(await replayMany({ event_types: ['contact.updated'], dry_run: true })).toMatchObject({ matched: 0 })
    expect(await webhooks.sql`select id from replays`).toEqual([])
    expect(await completed((await replayMany({ event_types: ['contact.created'] })).id)).toMatchObject({ enqueued: 5 })
    const { id: replayId } = await replayMany({ since: at(2), until: at(7) })
    await completed(replayId)
    await until(() => expect(receiver.got).toHaveLength(10))
    expect(new Set(gotIds().slice(5))).toEqual(new Set(dead.slice(2, 7).map(({ event }) => event)))
    for (const until of [at(2), at(7)])
      expect(await failureOf(replayMany({ since: at(7), until }))).toBe('invalid_field_value')
  })

  test('of failed ones sends them now, and not at their time', async () => {
    receiver.respondWith(answer(500))
    await webhooks.emit({}, {})
    await until(async () => expect(await webhooks.deliveries({ status: 'failed' })).toHaveLength(2))
    await webhooks.sql`update due_deliveries set due_at = now() + interval '1 hour'`
    receiver.respondWith(answer(200))
    expect(await replayMany({ status: 'failed', event_types: ['contact.created'], dry_run: true })).toMatchObject({
      matched: 0,
    })
    await pause('paused')
    await webhooks.emit({})
    await until(async () => expect(await webhooks.deliveries({ status: 'pending' })).toHaveLength(1))
    const made = await replayMany({ status: 'failed', event_types: ['message.received'] })
    expect(made).toMatchObject({ matched: 2 })
    await pause('active')
    await until(async () => expect(await replay(made.id)).toMatchObject({ status: 'completed', succeeded: 2 }))
  })

  test('of failed ones sends none of its own again, though it was made by a clock that is ahead', async () => {
    receiver.respondWith(answer(500))
    await webhooks.emit({}, {}, {}, {}, {}, {})
    await until(async () => expect(await webhooks.deliveries({ status: 'failed' })).toHaveLength(6))
    await webhooks.sql`update due_deliveries set due_at = now() + interval '1 hour'`
    await webhooks.sql`update lanes set failures = 0, held_until = '-infinity', paced_until = '-infinity'`
    const job = newId('rpl')
    const endId = firstIdAt('wbd', new Date(Date.now() + 20_000))
    await webhooks.sql`
      insert into replays (id, organization_id, subscription_id, source, position, end_id, matched, created_at)
      values (${job}, ${webhooks.organizationId}, ${id}, 'failed', 'wbd_', ${endId}, 6, now())
    `
    webhooks.replays.wake()
    await until(async () => expect(await replay(job)).toMatchObject({ status: 'completed', enqueued: 6 }))
  })

  test('never replays what died after it began, nor its own', async () => {
    await die(8)
    await pause('paused')
    const made = await replayMany()
    await until(async () => expect(await replay(made.id)).toMatchObject({ status: 'running', enqueued: 5 }))
    await die(3, { ageMs: 30_000 })
    await pause('active')
    await webhooks.hurry()
    await until(async () => expect(await replay(made.id)).toMatchObject({ status: 'completed', succeeded: 8 }))
    expect(receiver.got).toHaveLength(8)
  })

  test('counts as failed what is given up', async () => {
    await die(3)
    receiver.respondWith(answer(410))
    const made = await replayMany()
    await until(async () => expect(await replay(made.id)).toMatchObject({ enqueued: 3, succeeded: 0, failed: 3 }))
  })

  test('runs alone for its subscription, and can be cancelled', async () => {
    await die(30)
    await pause('paused')
    const made = await replayMany()
    expect(await failureOf(replayMany())).toBe('replay_in_progress')
    await until(async () => expect(await replay(made.id)).toMatchObject({ status: 'running', enqueued: 5 }))
    const cancelled = await cancel(made.id)
    expect(cancelled).toMatchObject({ status: 'cancelled', finished_at: expect.any(String) })
    expect(await cancel(made.id)).toEqual(cancelled)
    await pause('active')
    await until(async () => expect(await replay(made.id)).toMatchObject({ enqueued: 5, succeeded: 5 }))
    const second = await replayMany()
    expect(await completed(second.id)).toMatchObject({ enqueued: 30 })
    expect(await cancel(second.id)).toMatchObject({ status: 'completed' })
  })

  test('goes on where a process stopped in the middle, and repeats nothing', async () => {
    await die(60)
    receiver.respondWith((response) => void setTimeout(() => response.end(), 20))
    const first = startReplays(webhooks, webhooks.attempts.wake)
    const made = await replayMany()
    await until(async () => expect((await replay(made.id)).enqueued).toBeGreaterThan(5))
    await first.stop()
    await until(async () => expect(await replay(made.id)).toMatchObject({ status: 'completed', succeeded: 60 }))
    expect(new Set(gotIds()).size).toBe(60)
    expect(receiver.got).toHaveLength(60)
  })

  test('is refused with the key of another request, a dry run too, which takes no key itself', async () => {
    await die(1)
    const key = newId('req')
    const withKey = (fingerprint: string) => ({ ...webhooks.caller, idempotency: { key, fingerprint } })
    expect(await replayMany({ dry_run: true }, withKey('dry'))).toMatchObject({ matched: 1 })
    const made = await replayMany({}, withKey('real'))
    expect(await failureOf(replayMany({ dry_run: true }, withKey('dry')))).toBe('idempotency_key_reuse')
    expect(await failureOf(replayMany({}, withKey('other')))).toBe('idempotency_key_reuse')
    expect((await replayMany({}, withKey('real'))).id).toBe(made.id)
  })

  test('ends when its subscription is disabled or deleted', async () => {
    await die(30)
    await pause('paused')
    const made = await replayMany()
    await until(async () => expect(await replay(made.id)).toMatchObject({ enqueued: 5 }))
    await webhooks.sql`update subscriptions set status = 'disabled', disabled_reason = 'operator', disabled_at = now()`
    await webhooks.hurry()
    await until(async () => expect(await replay(made.id)).toMatchObject({ status: 'cancelled', failed: 5 }))
    expect(await failureOf(replayMany())).toBe('webhook_subscription_disabled')
    expect(await failureOf(replayMany({ dry_run: true }))).toBe('webhook_subscription_disabled')
  })

  test('has a share of its own: a new event overtakes it', async () => {
    await die(300)
    receiver.respondWith((response) => void setTimeout(() => response.end(), 100))
    const made = await replayMany()
    await until(() => expect(receiver.got.length).toBeGreaterThan(5))
    const [fresh] = await webhooks.emit({})
    await until(() => expect(gotIds()).toContain(fresh))
    expect((await replay(made.id)).enqueued).toBeLessThan(200)
    const waiting = await webhooks.sql`select from due_deliveries where replay_id = ${made.id ?? ''} and not tried`
    expect(waiting.length).toBeLessThanOrEqual(5)
  })

  test('waits for none of other organizations, however many those are', async () => {
    await die(20)
    const jobs = Array.from({ length: 1_000 }, (_, n) => ({
      id: newId('rpl'),
      subscription: newId('wbs'),
      // In the order of ids they stand before ours.
      organization: `org_00${n % 5}`,
    }))
    await webhooks.sql`
      insert into replays (id, organization_id, subscription_id, source, position, end_id, matched, created_at, due_at)
      select id, organization, subscription, 'dead', 'wbd_', 'wbe_', 0, now(), now() - interval '1 minute'
      from json_to_recordset(${JSON.stringify(jobs)}::text::json) as j(id text, subscription text, organization text)
    `
    const made = await replayMany()
    await until(async () => expect(await replay(made.id)).toMatchObject({ status: 'completed', succeeded: 20 }))
    const others = await webhooks.sql`select from replays where finished_at is null`
    expect(others.length).toBeGreaterThan(500)
  })
})

test('a replay is not made when its subscription is disabled while its deliveries are counted', async () => {
  const { sql } = webhooks
  await die(1)
  const { refused } = await sql.begin(async (tx) => {
    await tx`update subscriptions set status = 'disabled', disabled_reason = 'operator', disabled_at = now()`
    const asked = failureOf(replayMany())
    await untilSomebodyWaits(sql)
    return { refused: asked }
  })
  expect(await refused).toBe('webhook_subscription_disabled')
  expect(await sql`select from replays`).toHaveLength(0)
})

test('a replay ends with what there was when it was asked for, however late its end is given', async () => {
  const { id: replayId } = await replayMany({ status: 'failed', until: '2099-01-01T00:00:00Z' })
  const [row] = await webhooks.sql<{ endId: string }[]>`select end_id from replays where id = ${replayId}`
  expect(timeOf(row?.endId ?? '').getTime()).toBeLessThanOrEqual(Date.now())
})

test('a replay that another instance has in hand is left to that one, and not waited for', async () => {
  const { sql, organizationId } = webhooks
  const job = newId('rpl')
  await die(1)
  await sql`
    insert into replays (id, organization_id, subscription_id, source, position, end_id, matched, created_at, due_at)
    values (${job}, ${organizationId}, ${id}, 'dead', 'wbd_', 'wbe_', 1, now(), now() + interval '200 ms')
  `
  await sql.begin(async (tx) => {
    await tx`select from replays where id = ${job} for no key update`
    const isDue = () => tx`select from replays where due_at < clock_timestamp() - interval '200 ms'`
    await until(async () => expect(await isDue()).toHaveLength(1))
    expect(await lockWaits(tx)).toHaveLength(0)
  })
  expect(await completed(job)).toMatchObject({ enqueued: 1 })
})

test('a replay is looked at every few seconds while its subscription is paused and it may enqueue no more', async () => {
  await die(6)
  await pause('paused')
  await replayMany()
  const waits = () => webhooks.sql`select from replays where enqueued = 5 and due_at > now() + interval '3 seconds'`
  await until(async () => expect(await waits()).toHaveLength(1))
})

test('a replay takes none of which the payload is no longer kept', async () => {
  await die(2, { ageMs: 31 * 24 * 3_600_000 })
  const [kept] = await die(1, { ageMs: 29 * 24 * 3_600_000 })
  const { id: replayId } = await replayMany({ since: new Date(0).toISOString() })
  expect(await completed(replayId)).toMatchObject({ matched: 1, enqueued: 1 })
  await until(() => expect(gotIds()).toEqual([kept?.event]))
})

test('a replay sends what was replayed before, as the event that it is', async () => {
  const { organizationId, sql } = webhooks
  const [row] = await die(1)
  const [again, event] = [newId('wbd'), row?.event ?? '']
  await sql`delete from dead_deliveries`
  await sql`
    insert into deliveries (id, organization_id, subscription_id, event_type, event_id, event_at, replayed_from)
    values (${again}, ${organizationId}, ${id}, 'message.received', ${event}, ${row?.at ?? null}, ${row?.id ?? ''})
  `
  await sql`insert into dead_deliveries (id, organization_id, subscription_id) values (${again}, ${organizationId}, ${id})`
  // Ids of this moment are those of deliveries that are made from now on.
  await until(() => expect(Date.now()).toBeGreaterThan(timeOf(again).getTime()))
  const made = await replayMany()
  await until(async () => expect(await replay(made.id)).toMatchObject({ matched: 1, succeeded: 1 }))
  expect(gotIds()).toEqual([event])
})

test('a replay goes on though its first ones fail', async () => {
  await die(8)
  receiver.respondWith(answer(500))
  const { id: replayId } = await replayMany()
  expect(await completed(replayId)).toMatchObject({ enqueued: 8, succeeded: 0, failed: 0 })
})

test('fifty may wait at a time, five of one replay: organizations share alike, and so do the replays of one, and each has a place', () => {
  const shares = [1, 10, 25, 50, 100].map((owners) => [1, 2, 10].map((jobs) => shareOf(owners, jobs)))
  expect(shares).toEqual([
    [5, 5, 5],
    [5, 2, 1],
    [2, 1, 1],
    [1, 1, 1],
    [1, 1, 1],
  ])
})

test('beyond 100,000 a replay says where the next one begins, and no more are counted when its subscription is enabled', async () => {
  const { sql, organizationId } = webhooks
  const start = Date.now() - 3_000_000
  const times = Array.from({ length: 1_001 }, (_, n) => firstIdAt('wbd', new Date(start + n)).slice(0, 14))
  await sql`
    insert into dead_deliveries (id, organization_id, subscription_id, event_type)
    select t || lpad(n::text, 16, '0'), ${organizationId}, ${id}, 'message.received' from unnest(${times}::text[]) t, generate_series(1, 100) n
  `
  const first = await replayMany({ dry_run: true })
  expect(first).toMatchObject({
    matched: 100_000,
    truncated: true,
    next_since: new Date(start + 1_000).toISOString(),
  })
  await pause('paused')
  const made = await replayMany()
  expect(made).toMatchObject({ matched: 100_000, truncated: true, next_since: first.next_since })
  await cancel(made.id)
  await pause('active')
  const next = await replayMany({ since: first.next_since ?? '', dry_run: true })
  expect(next).toMatchObject({ matched: 100, truncated: false, next_since: null })
  expect(await webhooks.ask(enableWebhookSubscription, { params: { id }, body: {} })).toMatchObject({
    replayable_count: 100_000,
  })
})

test.each([
  ['counts for replays', () => replayMany({ dry_run: true })],
  ['replays', () => replayMany()],
  ['enabled subscriptions', () => webhooks.ask(enableWebhookSubscription, { params: { id }, body: {} })],
])("one organization's %s leave connections for others", async (_what, ask) => {
  let ended = 0
  const { all } = await webhooks.sql.begin(async (tx) => {
    // They take as long as where very many are dead.
    await tx`lock table dead_deliveries`
    const asked = Array.from({ length: 30 }, () => ask().finally(() => ended++))
    const settled = Promise.allSettled(asked)
    await untilSomebodyWaits(tx)
    await webhooks.sql`select 1`
    expect(ended).toBe(0)
    return { all: settled }
  })
  expect((await all).some(({ status }) => status === 'fulfilled')).toBe(true)
})

test('replays are listed newest first, and nobody else’s', async () => {
  const ids = []
  for (let n = 0; n < 3; n++) {
    const made = await replayMany()
    await completed(made.id)
    ids.unshift(made.id)
  }
  const list = async (query: object, caller = webhooks.caller) => {
    const page = await listWebhookReplays(webhooks, { params: {}, query, body: undefined }, caller)
    if ('whole' in page) throw new Error('a list is answered by its handler')
    next = page.next_cursor
    return page.data.map((item) => item.id)
  }
  let next: string | null = null
  expect(await list({})).toEqual(ids)
  expect(await list({ limit: '2', subscription_id: id })).toEqual(ids.slice(0, 2))
  expect(await list({ limit: '2', subscription_id: id, cursor: next })).toEqual(ids.slice(2))
  expect(await list({ subscription_id: newId('wbs') })).toEqual([])
  const stranger = systemCaller(newId('org'))
  expect(await list({}, stranger)).toEqual([])
  expect(await failureOf(replay(ids[0] ?? '', stranger))).toBe('resource_not_found')
  expect(await failureOf(cancel(ids[0] ?? '', stranger))).toBe('resource_not_found')
  expect(await failureOf(replayMany({}, stranger))).toBe('resource_not_found')
})
