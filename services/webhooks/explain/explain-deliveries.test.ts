import { explainRecordedEvent } from '@app/shared/events/explain-recorded-event.ts'
import { newId } from '@app/shared/values/ids.ts'
import { until } from '@app/test/until.ts'
import { beforeAll, expect, onTestFinished, test } from 'vitest'
import type { TestWebhooks } from '../testing/app.ts'
import { answer, type Receiver, startReceiver } from '../testing/receiver.ts'
import { webhooksAndReceiver } from '../testing/webhooks-and-receiver.ts'
import { updateWebhookSubscription } from '../subscriptions/update-webhook-subscription.ts'
import { explainDelivery, explainEvents } from './explain-deliveries.ts'

let webhooks: TestWebhooks
let receiver: Receiver
const both = webhooksAndReceiver()
beforeAll(() => void ({ webhooks, receiver } = both))

test('a delivery whose attempt is under way is told as that, and not as one that waits', async () => {
  const ends: (() => void)[] = []
  receiver.respondWith((...call) => void ends.push(() => answer(500)(...call)))
  await webhooks.subscribe({ url: receiver.url })
  await webhooks.emit({})
  await until(() => expect(ends).toHaveLength(1))
  const [delivery] = await webhooks.deliveries()
  const told = async () => {
    const { history } = await webhooks.ask(explainDelivery, { body: { id: delivery?.id ?? '' } })
    return history.map(({ what }) => what)
  }
  expect(await told()).toEqual(['message.received is to be delivered', 'is being delivered: attempt 1'])
  ends[0]?.()
  await until(async () =>
    expect(await told()).toEqual([
      'message.received is to be delivered',
      'attempt 1 to deliver it: 500',
      'is failed, and is tried again: try 2 of 12',
    ]),
  )
  await webhooks.sql`update due_deliveries set due_at = now() + interval '1 hour'`
  const { history } = await webhooks.ask(explainDelivery, { body: { id: delivery?.id ?? '' } })
  const { next_attempt_at: next } = await webhooks.delivery(delivery?.id ?? '')
  expect(history.at(-1)?.details).toMatchObject({ next_at: new Date(next ?? '') })
})

test('a delivery whose attempt was broken off says so, and what it waits for now', async () => {
  const { id } = await webhooks.subscribe({ url: receiver.url, events: ['message.edited'] })
  await webhooks.ask(updateWebhookSubscription, { params: { id }, body: { status: 'paused' } })
  await webhooks.emit({ type: 'message.edited' })
  const [delivery] = await until(async () => {
    const held = await webhooks.deliveries({ subscription_id: id })
    expect(held).toHaveLength(1)
    return held
  })
  const begunAgo = async (seconds: number) => {
    await webhooks.sql`
      update due_deliveries set attempts = 1, begun_at = now() - ${seconds} * interval '1 second'
      where id = ${delivery?.id ?? ''}
    `
    const { history } = await webhooks.ask(explainDelivery, { body: { id: delivery?.id ?? '' } })
    return history.slice(1).map(({ what }) => what)
  }
  expect(await begunAgo(5)).toEqual(['is being delivered: attempt 1'])
  expect(await begunAgo(30)).toEqual([
    'attempt 1 to deliver it: interrupted',
    'is held until its subscription is resumed: its owner has paused it',
  ])
})

test('a delivery that waits for an endpoint that fails says so', async () => {
  receiver.respondWith(answer(500))
  await webhooks.subscribe({ url: receiver.url, events: ['message.sent'] })
  for (let n = 0; n < 6; n++) await webhooks.emit({ type: 'message.sent' })
  const told = async () => {
    const deliveries = await webhooks.deliveries()
    const asked = deliveries.map(({ id }) => webhooks.ask(explainDelivery, { body: { id } }))
    return (await Promise.all(asked)).map(({ history }) => history.at(-1)?.what)
  }
  await until(async () =>
    expect(await told()).toContainEqual(
      expect.stringMatching(/^is \w+, and its endpoint rests: it has failed \d+ times in a row$/),
    ),
  )
})

test('a delivery that waits for another one of its customer says for which', async () => {
  const ends: (() => void)[] = []
  const receiver = await startReceiver()
  onTestFinished(() => receiver.close())
  receiver.respondWith((...call) => void ends.push(() => answer(200)(...call)))
  await webhooks.subscribe({ url: receiver.url, events: ['message.status'] })
  const one = { type: 'message.status', line: 'ctm_1' }
  const events = await webhooks.emit(one, one, { ...one, line: 'ctm_2' }, one)
  await until(() => expect(ends).toHaveLength(2))
  const [first, second, other, third] = await until(async () => {
    const deliveries = await webhooks.deliveries({ event_type: 'message.status' })
    const ids = events.map((event) => deliveries.find(({ event_id: id }) => id === event)?.id ?? '')
    expect(ids).not.toContain('')
    return ids
  })
  const told = async (id = '') => (await webhooks.ask(explainDelivery, { body: { id } })).history.at(-1)
  const isBehindIt = {
    what: `is pending, and waits behind ${first}: a customer’s events go one at a time`,
    details: { behind: first },
  }
  expect(await told(second)).toMatchObject(isBehindIt)
  expect(await told(third)).toMatchObject(isBehindIt)
  for (const id of [first, other]) expect(await told(id)).toMatchObject({ what: 'is being delivered: attempt 1' })
  receiver.respondWith(answer(200))
  for (const end of ends) end()
  await until(async () => expect(await told(third)).toMatchObject({ what: 'is succeeded' }))
})

interface Standing {
  subscription: object | null
  dead?: string | null
  line?: string | null
}

/** A delivery of a subscription as it may stand, and that nobody works on. */
async function standing({ subscription, dead, line = null }: Standing) {
  const { sql, organizationId: org } = webhooks
  const [id, sub, event] = [newId('wbd'), newId('wbs'), newId('evt')]
  const at = new Date()
  if (subscription !== null) {
    const row = {
      id: sub,
      organization_id: org,
      url: receiver.url,
      events: ['message.edited'],
      created_at: at,
      updated_at: at,
    }
    await sql`insert into subscriptions ${sql({ ...row, ...subscription })}`
  }
  await sql`insert into lanes (id, grp, failures) values (${sub}, ${org}, 21)`
  const delivery = { id, organization_id: org, subscription_id: sub, event_type: 'message.edited', event_id: event }
  await sql`insert into deliveries ${sql(delivery)}`
  await sql`insert into delivered_types (organization_id, event_type) values (${org}, 'message.edited') on conflict do nothing`
  if (dead === undefined)
    await sql`insert into due_deliveries ${sql({ ...delivery, line, event_at: at, due_at: new Date(Date.now() + 3_600_000) })}`
  else
    await sql`insert into dead_deliveries (id, organization_id, subscription_id, error_code) values (${id}, ${org}, ${sub}, ${dead})`
  return { id, event }
}

const paused = { status: 'paused' }
const disabled = { status: 'disabled', disabled_at: new Date() }

test('when a delivery goes on is told where it goes on by itself', async () => {
  const nextOf = async (state: Parameters<typeof standing>[0]) => {
    const { id } = await standing(state)
    await webhooks.sql`update due_deliveries set tried = true where id = ${id}`
    return (await webhooks.ask(explainDelivery, { body: { id } })).history.at(-1)?.details?.['next_at']
  }
  const itself = { disabled_reason: 'consecutive_failures', paused_at: new Date() }
  for (const state of [{}, { ...paused, ...itself }]) expect(await nextOf({ subscription: state })).toBeInstanceOf(Date)
  for (const state of [paused, { ...disabled, disabled_reason: 'operator' }, null])
    expect(await nextOf({ subscription: state })).toBeUndefined()
})

test.each([
  ['owner', { subscription: paused }, 'is held until its subscription is resumed: its owner has paused it'],
  [
    'itself',
    { subscription: { ...paused, disabled_reason: 'consecutive_failures', paused_at: new Date() } },
    'is pending, and its subscription has paused itself: its endpoint has failed 21 times in a row, and is asked now and then',
  ],
  [
    'operator',
    { subscription: { ...disabled, disabled_reason: 'operator' } },
    'is about to be given up: its subscription is disabled, since the operator has disabled it',
  ],
  [
    '410',
    { subscription: { ...disabled, disabled_reason: 'gone' } },
    'is about to be given up: its subscription is disabled, since its endpoint said that it is gone for good (410)',
  ],
  [
    'days',
    { subscription: { ...disabled, disabled_reason: 'failing_too_long' } },
    'is about to be given up: its subscription is disabled, since it failed for days',
  ],
  ['deletion', { subscription: null }, 'is about to be given up: its subscription was deleted'],
])('a delivery that waits tells who holds it: %s', async (_who, state, what) => {
  const { id } = await standing(state)
  expect((await webhooks.ask(explainDelivery, { body: { id } })).history.at(-1)?.what).toBe(what)
})

test.each([
  ['subscription_deleted', 'is dead: its subscription was deleted'],
  ['subscription_disabled', 'is dead: its subscription was disabled'],
  ['expired', /^is dead: it waited too long for its endpoint/],
  ['gone', 'is dead: its endpoint said that it is gone for good (410)'],
  [null, 'is dead: attempt 0 was its last one, and failed too'],
])('a delivery that was given up tells why, and when: %s', async (dead, what) => {
  const { id } = await standing({ subscription: {}, dead })
  const told = (await webhooks.ask(explainDelivery, { body: { id } })).history.at(-1)
  expect(told?.what).toMatch(what)
  expect(told?.details?.['died_at']).toBeInstanceOf(Date)
})

test('a delivery waits behind those to its own subscription alone', async () => {
  await standing({ subscription: {}, line: 'ctm_3' })
  const { id } = await standing({ subscription: {}, line: 'ctm_3' })
  expect((await webhooks.ask(explainDelivery, { body: { id } })).history.at(-1)?.what).toBe('is pending')
})

test('an event is found by its id alone', async () => {
  const { id, event } = await standing({ subscription: {}, dead: 'gone' })
  const { history } = await webhooks.ask(explainEvents, { body: { event_ids: [event] } })
  expect(history[0]?.details).toMatchObject({ delivery_id: id, event_id: event })
})

test('an event that tells of a subscription is not delivered to that one, and says so', async () => {
  const it = webhooks.another()
  const events = ['webhook.subscription.paused'] as const
  const { id } = await it.subscribe({ url: receiver.url, events: [...events, 'message.received'] })
  await it.ask(updateWebhookSubscription, { params: { id }, body: { status: 'paused' } })
  const [recorded] = await webhooks.sql<{ event: string }[]>`
    select headers ->> 'event' as event from outbox where headers ->> 'except' = ${id}
  `
  const { event } = await it.ask(explainRecordedEvent, { body: { id: recorded?.event ?? '' } })
  expect(event).toMatchObject({ organization_id: it.organizationId, type: events[0], except: id })
  const told = [{ id: recorded?.event ?? '', type: events[0], phone_number_id: null, except: event?.except }]
  const body = { organization_id: it.organizationId, event_ids: [], told }
  const { history } = await it.ask(explainEvents, { body })
  expect(history.map(({ what }) => what)).toEqual([
    `webhook.subscription.paused has no delivery to ${id}: the event tells of it, and goes to the others alone`,
  ])
})

test('an event that was told and is delivered to nobody, or not to all, says why', async () => {
  const it = webhooks.another()
  const told = [{ id: newId('evt'), type: 'message.sent', phone_number_id: '106540352242922' }]
  const why = async () => {
    const body = { organization_id: it.organizationId, event_ids: [told[0]?.id ?? ''], told }
    return (await it.ask(explainEvents, { body })).history
  }
  expect((await why()).map(({ what }) => what)).toEqual([
    'message.sent has no delivery to anybody: the organization has no webhook subscription',
  ])
  const { id } = await it.subscribe({ url: receiver.url, events: ['message.received'] })
  const of = async (set: object) => {
    await webhooks.sql`update subscriptions set ${webhooks.sql(set)} where id = ${id}`
    return (await why()).map(({ what }) => what)
  }
  expect(await of({ status: 'active' })).toEqual([`message.sent has no delivery to ${id}: it does not select the type`])
  expect(await of({ events: ['message.sent'], phone_number_ids: ['1'] })).toEqual([
    `message.sent has no delivery to ${id}: it does not take the number`,
  ])
  expect(await of({ phone_number_ids: [], status: 'disabled' })).toEqual([
    `message.sent has no delivery to ${id}: it is disabled`,
  ])
  expect(await of({ status: 'active' })).toEqual([
    expect.stringMatching(/: it did not select the event when that came/),
  ])
  const failing = { consumer: 'webhooks-fan-out', event_id: `${it.organizationId}:${told[0]?.id}`, dead: false }
  const noted = { ...failing, subject: 'event.messaging.message-sent', headers: {}, payload: '', failures: 7 }
  await webhooks.sql`insert into dead_events ${webhooks.sql({ ...noted, last_error: 'poison' })}`
  expect(await of({ status: 'active' })).toEqual([
    expect.stringMatching(/: it did not select the event when that came/),
  ])
  await webhooks.sql`update dead_events set dead = true where event_id = ${failing.event_id}`
  expect(await of({ status: 'active' })).toEqual([
    `message.sent has no delivery to ${id}: the fan-out of the event failed eight times, and was given up`,
  ])
  const delivery = {
    id: newId('wbd'),
    organization_id: it.organizationId,
    subscription_id: id,
    event_type: 'message.sent',
  }
  await webhooks.sql`insert into deliveries ${webhooks.sql({ ...delivery, event_id: told[0]?.id ?? '' })}`
  // An id is of an organization.
  const others = { ...delivery, id: newId('wbd'), organization_id: newId('org'), subscription_id: newId('wbs') }
  await webhooks.sql`insert into deliveries ${webhooks.sql({ ...others, event_id: told[0]?.id ?? '' })}`
  expect((await why()).map(({ what }) => what)).toEqual(['message.sent is to be delivered', 'is succeeded'])
  const again = { ...delivery, id: newId('wbd'), replayed_from: delivery.id }
  await webhooks.sql`insert into deliveries ${webhooks.sql({ ...again, event_id: told[0]?.id ?? '' })}`
  expect((await why()).map(({ what }) => what).slice(2)).toEqual([
    'message.sent is to be delivered again',
    'is succeeded',
  ])
})
