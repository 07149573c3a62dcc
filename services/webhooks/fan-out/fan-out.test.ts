import { consumers } from '@app/shared/events/provision.ts'
import { streamName } from '@app/shared/events/stream.ts'
import { newId } from '@app/shared/values/ids.ts'
import { until } from '@app/test/until.ts'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { ownNumber, type TestWebhooks, testWebhooks } from '../testing/app.ts'
import { type Receiver, startReceiver } from '../testing/receiver.ts'
import { startFanOut } from './fan-out.ts'
import { recordEvents } from './record-events.ts'

let webhooks: TestWebhooks
let receiver: Receiver

beforeAll(async () => {
  webhooks = await testWebhooks()
})
afterAll(async () => {
  await receiver.close()
  await webhooks.close()
})

beforeEach(async () => {
  await receiver?.close()
  receiver = await startReceiver()
  await webhooks.clear()
})

const gotIds = (from = receiver) => from.got.map(({ headers }) => headers['x-svc-event-id'])

/** Sends a last event, waits for it, and answers what came before it. */
async function gotBefore() {
  const [end] = await webhooks.emit({})
  await until(() => expect(gotIds()).toContain(end))
  return gotIds().filter((id) => id !== end)
}

/** Under another message id, so that the stream does not drop it. */
async function publishAgain(eventId = '') {
  const id = `${webhooks.organizationId}:${eventId}`
  await webhooks.sql`update outbox set published_at = null, id = id || ' again' where id = ${id}`
  webhooks.relay.wake()
}

describe('an event goes to', () => {
  test('the subscriptions of its organization alone', async () => {
    await webhooks.subscribe({ url: receiver.url })
    await webhooks.emit({ organizationId: newId('org') })
    expect(await gotBefore()).toEqual([])
  })

  test('those that select its type', async () => {
    await webhooks.subscribe({ url: receiver.url, events: ['message.received', 'contact.created'] })
    const [, created] = await webhooks.emit({ type: 'message.status' }, { type: 'contact.created' })
    expect(await gotBefore()).toEqual([created])
  })

  test('those that want its number; one without a number goes to all', async () => {
    await webhooks.subscribe({ url: receiver.url, phone_number_ids: [ownNumber] })
    const [, own, none] = await webhooks.emit({ phone: '999999999999' }, { phone: ownNumber }, {})
    expect(new Set(await gotBefore())).toEqual(new Set([own, none]))
  })

  test.each([
    ['an empty list', { phone_number_ids: [] }],
    ['no list', {}],
  ])('those that name no number at all: %s', async (_, numbers) => {
    await webhooks.subscribe({ url: receiver.url, ...numbers })
    const [other] = await webhooks.emit({ phone: '999999999999' })
    expect(await gotBefore()).toEqual([other])
  })

  test('each of several subscriptions once, with its own delivery id, and one stored payload', async () => {
    const second = await startReceiver()
    await webhooks.subscribe({ url: receiver.url })
    await webhooks.subscribe({ url: second.url })
    await webhooks.emit({})
    await until(() => expect([receiver.got.length, second.got.length]).toEqual([1, 1]))
    const idOf = (from: Receiver) => from.got[0]?.headers['x-svc-delivery-id']
    expect(idOf(receiver)).not.toBe(idOf(second))
    expect(await webhooks.sql`select event_id from events`).toHaveLength(1)
    await second.close()
  })

  test('a disabled subscription as a dead delivery that was never tried', async () => {
    await webhooks.subscribe({ url: receiver.url })
    await webhooks.sql`update subscriptions set status = 'disabled', disabled_at = now()`
    await webhooks.emit({})
    await until(async () => {
      expect(await webhooks.deliveries()).toMatchObject([
        { status: 'dead', error_code: 'subscription_disabled', attempt_count: 0 },
      ])
    })
  })

  test('nobody, when a subscription has been disabled for thirty days', async () => {
    await webhooks.subscribe({ url: receiver.url })
    await webhooks.subscribe({ url: receiver.url, events: ['contact.created'] })
    await webhooks.sql`
      update subscriptions set status = 'disabled',
        disabled_at = now() - interval '30 days' + case when 'contact.created' = any(events) then 1 else -1 end * interval '1 minute'
    `
    await webhooks.emit({}, { type: 'contact.created' })
    await until(async () => expect(await webhooks.deliveries({ event_type: 'contact.created' })).toHaveLength(1))
    expect(await webhooks.deliveries()).toHaveLength(1)
  })
})

test('an internal event leaves nothing behind', async () => {
  await webhooks.subscribe({ url: receiver.url })
  await webhooks.emit({ type: undefined })
  expect(await gotBefore()).toEqual([])
  expect(await webhooks.sql`select event_id from events`).toHaveLength(1)
})

test('an event that nobody selects leaves nothing behind', async () => {
  await webhooks.subscribe({ url: receiver.url })
  await webhooks.emit({ type: 'contact.created' })
  await gotBefore()
  expect(await webhooks.sql`select event_id from events`).toHaveLength(1)
})

test('an event that is published again is delivered once', async () => {
  await webhooks.subscribe({ url: receiver.url })
  const [eventId] = await webhooks.emit({})
  await until(() => expect(receiver.got).toHaveLength(1))
  await publishAgain(eventId)
  expect(await gotBefore()).toEqual([eventId])
  expect(await webhooks.deliveries()).toHaveLength(2)
})

test('events that come again after days are nothing to a younger subscription', async () => {
  const at = new Date(Date.now() - 10 * 60_000)
  const [eventId] = await webhooks.emit({ at })
  await webhooks.subscribe({ url: receiver.url })
  await publishAgain(eventId)
  expect(await gotBefore()).toEqual([])
})

test('an event of a host whose clock is behind comes to a subscription that was there before it', async () => {
  await webhooks.subscribe({ url: receiver.url })
  const [eventId] = await webhooks.emit({ at: new Date(Date.now() - 90_000) })
  await until(() => expect(gotIds()).toEqual([eventId]))
})

test('batches that hold the same events, at the same time, make each delivery once', async () => {
  const { id } = await webhooks.subscribe({ url: receiver.url })
  await webhooks.sql`update subscriptions set status = 'paused'`
  const at = new Date().toISOString()
  const rows = Array.from({ length: 50 }, (_, n) => ({
    head: {
      subject: 'event.messaging.something-happened',
      organization_id: webhooks.organizationId,
      event_id: `evt-${n}`,
      type: 'message.received',
      source: 'svc' as const,
      phone: null,
      line: null,
      except: null,
      at,
      trace: null,
      id_time: 'wbd_01KAAAAAAA',
    },
    payload: Buffer.from('{}'),
  }))
  const made = await Promise.all(
    [rows, rows.toReversed(), [...rows, ...rows], rows].map((some) => recordEvents(webhooks.sql, some)),
  )
  expect(made.flat().reduce((sum, { count }) => sum + count, 0)).toBe(50)
  const [counted] = await webhooks.sql`
    select count(*)::int, (select count(*)::int from due_deliveries where subscription_id = ${id}) as due from deliveries
  `
  expect(counted).toEqual({ count: 50, due: 50 })
})

describe('events of one line', () => {
  const customer = (line: string) => ({ line, type: 'customer.updated' })

  test('go one at a time, in their order, though two instances make the deliveries', async () => {
    const second = startFanOut(webhooks)
    await webhooks.subscribe({ url: receiver.url, events: ['customer.updated'] })
    let atOnce = 0
    let most = 0
    receiver.respondWith((response) => {
      most = Math.max(most, ++atOnce)
      setTimeout(() => {
        atOnce--
        response.end()
      }, 10)
    })
    const ids: string[] = []
    for (let n = 0; n < 30; n += 3)
      ids.push(...(await webhooks.emit(customer('cus_1'), customer('cus_1'), customer('cus_1'))))
    await until(() => expect(receiver.got).toHaveLength(30))
    expect(gotIds()).toEqual(ids)
    expect(most).toBe(1)
    await second.stop()
  })

  test('wait behind one that failed, while other lines and events pass', async () => {
    await webhooks.subscribe({ url: receiver.url, events: ['customer.updated', 'message.received'] })
    const [failing, next, passing] = [newId('evt'), newId('evt'), newId('evt')]
    receiver.respondWith((response, { headers }) => {
      response.writeHead(headers['x-svc-event-id'] === failing ? 500 : 200).end()
    })
    await webhooks.emit(
      { ...customer('cus_2'), eventId: failing },
      { ...customer('cus_2'), eventId: next },
      { ...customer('cus_3'), eventId: passing },
    )
    await until(() => expect(gotIds()).toEqual(expect.arrayContaining([failing, passing])))
    await gotBefore()
    expect(gotIds()).not.toContain(next)
    receiver.respondWith((response) => void response.end())
    await webhooks.hurry()
    await until(() => expect(gotIds().slice(-2)).toEqual([failing, next]))
  })

  test('wait for no more than a moment behind each that has none', async () => {
    await webhooks.subscribe({ url: receiver.url, events: ['customer.updated'] })
    const ackedAt: number[] = []
    const acks = webhooks.nc.subscribe(`$JS.ACK.${streamName}.${consumers.webhooksInOrder.name}.>`, {
      callback: () => void ackedAt.push(performance.now()),
    })
    const others = Array.from({ length: 600 }, () => ({ subject: 'event.platform.something-happened' }))
    await webhooks.emit(...others, customer('cus_5'))
    await until(() => expect(receiver.got).toHaveLength(1))
    acks.unsubscribe()
    // Ten at a time. On a busy machine some wait for the processor.
    const tens = ackedAt.slice(10).map((at, n) => at - (ackedAt[n] ?? 0))
    expect(tens.toSorted((one, other) => one - other)[tens.length >> 2]).toBeLessThan(40)
  })

  test('none is left behind, when a line empties while its next one comes', async () => {
    await webhooks.subscribe({ url: receiver.url, events: ['customer.updated'] })
    const ids: string[] = []
    for (let n = 0; n < 60; n++) {
      ids.push(...(await webhooks.emit(customer('cus_4'))))
      if (n % 3 === 0) await until(() => expect(receiver.got.length).toBeGreaterThanOrEqual(n))
    }
    await until(() => expect(receiver.got).toHaveLength(60))
    expect(gotIds()).toEqual(ids)
  })

  test('are delivered, too, where they come by the consumer of all others', async () => {
    await webhooks.subscribe({ url: receiver.url, events: ['customer.updated'] })
    const ids = await webhooks.emit({ ...customer('cus_6'), subject: 'event.messaging.something-happened' })
    await until(() => expect(gotIds()).toEqual(ids))
  })
})
