import { systemCaller } from '@app/shared/bus/ask.ts'
import { firstIdAt, newId, timeOf } from '@app/shared/values/ids.ts'
import { untilSomebodyWaits } from '@app/test/lock-waits.ts'
import { until } from '@app/test/until.ts'
import { beforeEach, describe, expect, test } from 'vitest'
import { deleteWebhookSubscription } from '../subscriptions/delete-webhook-subscription.ts'
import { enableWebhookSubscription } from '../subscriptions/enable-webhook-subscription.ts'
import type { TestWebhooks } from '../testing/app.ts'
import type { Receiver } from '../testing/receiver.ts'
import { failureOf, replaysOfOne } from '../testing/replays.ts'
import { listWebhookReplays } from './list-webhook-replays.ts'

const one = replaysOfOne()
const { die, replay, replayMany, cancel, completed, pause, gotIds } = one
let webhooks: TestWebhooks
let receiver: Receiver
let id: string
beforeEach(() => void ({ webhooks, receiver, id } = one))

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

  test('ends when its subscription is disabled', async () => {
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

  test('ends as cancelled with a subscription that is deleted, and enqueues no more', async () => {
    await die(30)
    await pause('paused')
    const made = await replayMany()
    await until(async () => expect(await replay(made.id)).toMatchObject({ enqueued: 5 }))
    await webhooks.ask(deleteWebhookSubscription, { params: { id } })
    await webhooks.hurry()
    await until(async () =>
      expect(await replay(made.id)).toMatchObject({ status: 'cancelled', enqueued: 5, failed: 5 }),
    )
  })
})

test('a replay that is over, cancelled or has lost its subscription is no end of another one of the organization', async () => {
  const { sql } = webhooks
  const other = await webhooks.subscribe({ url: receiver.url })
  await die(8, { subscription: other.id })
  await sql`update subscriptions set status = 'paused' where id = ${other.id}`
  const { id: otherId } = await replayMany({ subscription_id: other.id })
  const before = { status: 'running', enqueued: 5, succeeded: 0, failed: 0 }
  await until(async () => expect(await replay(otherId)).toMatchObject(before))
  await die(3)
  await completed((await replayMany()).id)
  expect(await replay(otherId)).toMatchObject(before)
  await die(8)
  await sql`update subscriptions set status = 'paused' where id = ${id}`
  const second = await replayMany()
  await cancel(second.id)
  expect(await replay(otherId)).toMatchObject(before)
  const third = await replayMany()
  await sql`update subscriptions set status = 'disabled', disabled_reason = 'operator', disabled_at = now() where id = ${id}`
  await webhooks.hurry()
  await until(async () => expect(await replay(third.id)).toMatchObject({ status: 'cancelled' }))
  expect(await replay(otherId)).toMatchObject(before)
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

test('a replay takes none of which the payload is no longer kept', async () => {
  await die(2, { ageMs: 31 * 24 * 3_600_000 })
  const [kept] = await die(1, { ageMs: 29 * 24 * 3_600_000 })
  const { id: replayId } = await replayMany({ since: new Date(0).toISOString() })
  expect(await completed(replayId)).toMatchObject({ matched: 1, enqueued: 1 })
  await until(() => expect(gotIds()).toEqual([kept?.event]))
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
