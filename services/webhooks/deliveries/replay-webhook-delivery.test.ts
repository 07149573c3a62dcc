import { systemCaller } from '@app/shared/bus/ask.ts'
import { newId } from '@app/shared/values/ids.ts'
import { untilSomebodyWaits } from '@app/test/lock-waits.ts'
import { until } from '@app/test/until.ts'
import { beforeEach, describe, expect, test } from 'vitest'
import { deleteWebhookSubscription } from '../subscriptions/delete-webhook-subscription.ts'
import { disableWebhookSubscription } from '../subscriptions/disable-webhook-subscription.ts'
import type { TestWebhooks } from '../testing/app.ts'
import { answer, type Receiver } from '../testing/receiver.ts'
import { failureOf, replaysOfOne } from '../testing/replays.ts'
import { replayWebhookDelivery } from './replay-webhook-delivery.ts'

const one = replaysOfOne()
const { die, pause } = one
let webhooks: TestWebhooks
let receiver: Receiver
let id: string
beforeEach(() => void ({ webhooks, receiver, id } = one))

const replayOne = (delivery = '', caller = webhooks.caller) =>
  webhooks.ask(replayWebhookDelivery, { params: { id: delivery } }, caller)

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
    await expect(replayOne(dead?.id)).rejects.toMatchObject({
      failure: 'resource_not_found',
      message: 'The subscription of this delivery was deleted.',
    })
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
