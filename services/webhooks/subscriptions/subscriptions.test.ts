import { systemCaller } from '@app/shared/bus/ask.ts'
import { newId } from '@app/shared/values/ids.ts'
import { toProblem } from '@app/shared/api/problem.ts'
import { until } from '@app/test/until.ts'
import { beforeAll, beforeEach, expect, test } from 'vitest'
import { ownNumber, type TestWebhooks } from '../testing/app.ts'
import type { Receiver } from '../testing/receiver.ts'
import { webhooksAndReceiver } from '../testing/webhooks-and-receiver.ts'
import { deleteWebhookSubscription } from './delete-webhook-subscription.ts'
import { disableWebhookSubscription } from './disable-webhook-subscription.ts'
import { enableWebhookSubscription } from './enable-webhook-subscription.ts'
import { getWebhookSubscription } from './get-webhook-subscription.ts'
import { listWebhookSubscriptions } from './list-webhook-subscriptions.ts'
import { updateWebhookSubscription } from './update-webhook-subscription.ts'

let webhooks: TestWebhooks
let receiver: Receiver
const url = 'https://93.184.216.34/hook'

const both = webhooksAndReceiver()
beforeAll(() => void ({ webhooks, receiver } = both))
beforeEach(() => webhooks.clear())

const failureOf = (work: Promise<unknown>) =>
  work.then(
    () => null,
    (err: unknown) => toProblem(err),
  )

const input = (id: string) => ({ params: { id }, query: {}, body: undefined })

async function list(query: object = {}) {
  const page = await listWebhookSubscriptions(webhooks, { params: {}, query, body: undefined }, webhooks.caller)
  if ('whole' in page) throw new Error('a list is answered by its handler')
  return page
}

test('the secret is answered once, sealed in the database and shown nowhere', async () => {
  const created = await webhooks.subscribe({ url, description: 'prod', phone_number_ids: [ownNumber] })
  expect(created).toMatchObject({
    object: 'webhook_subscription',
    url,
    description: 'prod',
    events: ['message.received'],
    phone_number_ids: [ownNumber],
    status: 'active',
    disabled_reason: null,
    consecutive_failures: 0,
    secrets: [{ id: expect.stringMatching(/^sec_/), expires_at: null }],
    initial_secret: expect.stringMatching(/^whsec_[\w-]{43}$/),
  })
  const { initial_secret: secret, ...shown } = created
  expect(await webhooks.subscription(created.id)).toEqual(shown)
  expect((await list()).data).toEqual([shown])
  const [row] = await webhooks.sql<{ sealed: string }[]>`select sealed from secrets`
  expect(row?.sealed).not.toContain(secret.slice(6))
})

test('a URL stays as given, or is written as a URI', async () => {
  const { id, ...created } = await webhooks.subscribe({ url: `${url}?a={1}|ä` })
  expect(created.url).toBe(`${url}?a=%7B1%7D%7C%C3%A4`)
  const update = (given: string) => webhooks.ask(updateWebhookSubscription, { params: { id }, body: { url: given } })
  expect((await update(`${url}/{2}`)).url).toBe(`${url}/%7B2%7D`)
  const enable = { params: { id }, body: { url: 'HTTPS://93.184.216.34' } }
  expect((await webhooks.ask(enableWebhookSubscription, enable)).url).toBe('HTTPS://93.184.216.34')
  const another = { ...enable, body: { url: `${url}/[3]` } }
  expect((await webhooks.ask(enableWebhookSubscription, another)).url).toBe(`${url}/%5B3%5D`)
})

test('a repeated key gets the first answer, its secret too, which is stored sealed', async () => {
  const caller = { ...webhooks.caller, idempotency: { key: newId('req'), fingerprint: 'f' } }
  const first = await webhooks.subscribe({ url }, caller)
  expect(await webhooks.subscribe({ url }, caller)).toEqual(first)
  // Whatever became of its number and its host meanwhile.
  const meanwhile = { url: 'https://10.0.0.1/hook', phone_number_ids: ['999999999999'] }
  expect(await webhooks.subscribe(meanwhile, caller)).toEqual(first)
  expect((await list()).data).toHaveLength(1)
  const stored = await webhooks.sql<{ answer: Uint8Array }[]>`select answer from idempotency.keys`
  expect(stored.map(({ answer }) => Buffer.from(answer).toString()).join()).not.toContain(first.initial_secret)
})

test.each([
  'http://93.184.216.34/hook',
  'https://10.0.0.1/hook',
  'https://user:password@93.184.216.34/hook',
  'https://2130706434/hook',
  'https://receiver.internal/hook',
  'https://receiver/hook',
  'ftp://93.184.216.34/hook',
  'hook',
])('%s is refused', async (bad) => {
  const allowed = '2130706434' // 127.0.0.2, which the tests allow
  const problem = await failureOf(webhooks.subscribe({ url: bad.replace(allowed, '167772161') }))
  expect(problem).toMatchObject({ failure: 'invalid_field_value', param: 'url' })
})

test('a number of somebody else is refused by its place in the list', async () => {
  const problem = await failureOf(webhooks.subscribe({ url, phone_number_ids: [ownNumber, '999999999999'] }))
  expect(problem).toMatchObject({ failure: 'invalid_field_value', param: 'phone_number_ids[1]' })
})

test('a number that is named twice is kept once', async () => {
  const { id, ...created } = await webhooks.subscribe({ url, phone_number_ids: [ownNumber, ownNumber] })
  expect(created.phone_number_ids).toEqual([ownNumber])
  expect((await webhooks.subscription(id)).phone_number_ids).toEqual([ownNumber])
})

test('the list is newest first, page by page, and its cursor belongs to its filters', async () => {
  const ids = []
  for (let n = 0; n < 5; n++) ids.unshift((await webhooks.subscribe({ url: `${url}/${n}` })).id)
  const first = await list({ limit: '2' })
  const second = await list({ limit: '2', cursor: first.next_cursor })
  const third = await list({ limit: '2', cursor: second.next_cursor })
  const pages = [first, second, third].map(({ data }) => data.map(({ id }) => id))
  expect(pages).toEqual([ids.slice(0, 2), ids.slice(2, 4), ids.slice(4)])
  expect([first.has_more, second.has_more, third.has_more, third.next_cursor]).toEqual([true, true, false, null])
  expect(await failureOf(list({ limit: '2', cursor: first.next_cursor, status: 'active' }))).toMatchObject({
    failure: 'invalid_cursor',
  })
  await webhooks.sql`update subscriptions set status = 'paused' where id = ${ids[3] ?? ''}`
  expect((await list({ status: 'paused' })).data.map(({ id }) => id)).toEqual([ids[3]])
})

test('another organization finds nothing, and deletes nothing', async () => {
  const { id } = await webhooks.subscribe({ url })
  const stranger = systemCaller(newId('org'))
  for (const ask of [getWebhookSubscription, deleteWebhookSubscription]) {
    expect(await failureOf(ask(webhooks, input(id), stranger))).toMatchObject({ failure: 'resource_not_found' })
  }
  expect(await webhooks.subscription(id)).toMatchObject({ id })
})

test('what becomes of a subscription becomes of no other one of the organization', async () => {
  receiver.respondWith((response) => void response.writeHead(500).end())
  const [{ id }, active, paused] = [
    await webhooks.subscribe({ url: receiver.url }),
    await webhooks.subscribe({ url: receiver.url }),
    await webhooks.subscribe({ url: receiver.url }),
  ]
  const update = (subscription: string, body: Parameters<typeof updateWebhookSubscription>[1]['body']) =>
    webhooks.ask(updateWebhookSubscription, { params: { id: subscription }, body })
  await update(paused.id, { status: 'paused' })
  await webhooks.emit({})
  await until(async () => expect(await webhooks.deliveries({ status: 'failed' })).toHaveLength(2))
  await webhooks.sql`update due_deliveries set due_at = now() + interval '1 hour' where subscription_id <> ${id}`
  const others = async () => [
    await webhooks.subscription(active.id),
    await webhooks.subscription(paused.id),
    await webhooks.sql`select id, due_at from due_deliveries where subscription_id <> ${id} order by id`,
  ]
  const before = await others()
  for (const act of [
    () => update(id, { description: 'new' }),
    () => update(id, { status: 'paused' }),
    () => update(id, { status: 'active' }),
    () => update(id, { url: `${receiver.url}/other` }),
    () => webhooks.ask(disableWebhookSubscription, { body: { subscription_id: id } }),
    () => webhooks.ask(enableWebhookSubscription, { params: { id }, body: {} }),
    () => deleteWebhookSubscription(webhooks, input(id), webhooks.caller),
  ]) {
    await act()
    expect(await others()).toEqual(before)
  }
})

test('a deleted subscription is gone, its secrets too; its waiting deliveries are dead and can be read', async () => {
  const { id } = await webhooks.subscribe({ url: receiver.url })
  receiver.respondWith((response) => void response.writeHead(500).end())
  const [tried] = await webhooks.emit({ payload: '{"a":1}' })
  await until(async () => expect(await webhooks.deliveries({ status: 'failed' })).toHaveLength(1))
  await webhooks.sql`update subscriptions set status = 'paused'`
  const [waiting] = await webhooks.emit({})
  await until(async () => expect(await webhooks.deliveries({ status: 'pending' })).toHaveLength(1))

  expect(await deleteWebhookSubscription(webhooks, input(id), webhooks.caller)).toEqual({
    id,
    object: 'webhook_subscription',
    deleted: true,
  })
  const dead = await webhooks.deliveries({ status: 'dead', subscription_id: id })
  expect(dead.map((delivery) => [delivery.event_id, delivery.error_code, delivery.next_attempt_at])).toEqual([
    [waiting, 'subscription_deleted', null],
    [tried, 'subscription_deleted', null],
  ])
  expect(await webhooks.delivery(dead[1]?.id ?? '')).toMatchObject({ response_status: 500, payload: { a: 1 } })
  expect(await webhooks.sql`select id from secrets`).toEqual([])
  expect(await failureOf(webhooks.subscription(id))).toMatchObject({ failure: 'resource_not_found' })
  expect(await failureOf(deleteWebhookSubscription(webhooks, input(id), webhooks.caller))).toMatchObject({
    failure: 'resource_not_found',
  })
})

test('what somebody has in hand when its subscription is deleted is given up then, though it was paused', async () => {
  const { id } = await webhooks.subscribe({ url: receiver.url })
  await webhooks.ask(updateWebhookSubscription, { params: { id }, body: { status: 'paused' } })
  await webhooks.emit({})
  await until(async () => expect(await webhooks.deliveries({ status: 'pending' })).toHaveLength(1))
  await webhooks.sql.begin(async (tx) => {
    await tx`select from due_deliveries for update`
    await deleteWebhookSubscription(webhooks, input(id), webhooks.caller)
    expect(await webhooks.deliveries({ status: 'pending' })).toHaveLength(1)
  })
  await until(async () => {
    expect(await webhooks.deliveries()).toMatchObject([{ status: 'dead', error_code: 'subscription_deleted' }])
  })
})

test('a call that is under way when its subscription is deleted is the last one', async () => {
  const { id } = await webhooks.subscribe({ url: receiver.url })
  const held: (() => void)[] = []
  receiver.respondWith((response) => void held.push(() => response.writeHead(500).end()))
  await webhooks.emit({})
  await until(() => expect(held).toHaveLength(1))
  await deleteWebhookSubscription(webhooks, input(id), webhooks.caller)
  held[0]?.()
  await until(async () => {
    expect(await webhooks.deliveries()).toMatchObject([
      { status: 'dead', error_code: 'subscription_deleted', attempt_count: 1, response_status: 500 },
    ])
  })
})
