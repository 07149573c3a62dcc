import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { admin } from './admin.ts'
import { client, type Json, newPhone, until } from './client.ts'
import { newOrganization } from './organization.ts'
import { type Receiver, startReceiver } from './receiver.ts'

const shared = client()
let own: Awaited<ReturnType<typeof newOrganization>>
let receiver: Receiver
let id: string
let strangerKey: string
const since = new Date(Date.now() - 60_000).toISOString()

beforeAll(async () => {
  receiver = await startReceiver()
  own = await newOrganization()
  const { id: organization } = await admin('organization', 'create', '--name', 'Stranger')
  strangerKey = (await admin('key', 'create', '--organization', organization, '--label', 'test')).key
})
afterAll(() => receiver.close())
beforeEach(async () => {
  receiver.deliveries.length = 0
  receiver.respondWith((response) => response.end('ok'))
  const body = { url: receiver.url, events: ['message.received'] }
  id = (await api('POST', '/webhook_subscriptions', { body })).body.data.id
  return async () => void (await api('DELETE', `/webhook_subscriptions/${id}`))
})

const api: typeof shared.api = (method, path, options) => shared.api(method, path, { key: own.key, ...options })

/** Somebody writes; answers the event's id. */
async function inbound(text: string): Promise<string> {
  const message = { from: newPhone().replace('+', ''), type: 'text', text: { body: text } }
  return (await shared.control('/control/inbound', { phone_number_id: own.phone, message })).id
}

const start = (body: object = {}, options = {}) =>
  api('POST', '/webhook_deliveries/replays', { body: { subscription_id: id, since, ...body }, ...options })
const gotIds = () => receiver.deliveries.map(({ headers }) => headers['x-svc-event-id'])
const deliveries = async (query: string): Promise<Json[]> =>
  (await api('GET', `/webhook_deliveries?subscription_id=${id}&limit=100${query}`)).body.data

/** Events that come while the subscription is disabled: dead, and never tried. */
async function missed(count: number) {
  await admin('webhook', 'disable', id)
  const events = await Promise.all(Array.from({ length: count }, () => inbound('missed')))
  await until(async () => {
    const dead = await deliveries('&status=dead')
    expect(dead.map((one) => one.event_id)).toEqual(expect.arrayContaining(events))
  })
  const enabled = await api('POST', `/webhook_subscriptions/${id}/enable`)
  const dead = await deliveries('&status=dead')
  expect(enabled.body.data).toMatchObject({ replayable_count: dead.length })
  return { events, dead, own: dead.find((one) => one.event_id === events[0]) }
}

test('what was missed is replayed, and its progress can be watched to the end', async () => {
  const { dead } = await missed(12)
  const count = dead.length
  const dry = await start({ dry_run: true })
  expect(dry).toMatchObject({ status: 200, body: { data: { id: null, matched: count, truncated: false } } })
  const made = await start()
  expect(made).toMatchObject({
    status: 202,
    body: { data: { id: expect.stringMatching(/^rpl_/), status: 'queued', matched: count, enqueued: 0 } },
  })
  const replayId: string = made.body.data.id
  await until(async () => {
    expect((await api('GET', `/webhook_deliveries/replays/${replayId}`)).body.data).toMatchObject({
      status: 'completed',
      enqueued: count,
      succeeded: count,
      failed: 0,
      finished_at: expect.any(String),
    })
  })
  expect(gotIds()).toEqual(expect.arrayContaining(dead.map((one) => one.event_id)))
  const replayed = (await deliveries('&status=succeeded')).filter((one) => one.replayed_from !== null)
  expect(new Set(replayed.map((one) => one.replayed_from))).toEqual(new Set(dead.map((one) => one.id)))
  const list = await api('GET', `/webhook_deliveries/replays?subscription_id=${id}`)
  expect(list.body.data.map((one: Json) => one.id)).toEqual([replayId])
  const cancelled = await api('POST', `/webhook_deliveries/replays/${replayId}/cancel`)
  expect(cancelled).toMatchObject({ status: 200, body: { data: { status: 'completed' } } })
})

test('a delivery is replayed by itself, and once for a repeated key', async () => {
  const { events, own: dead } = await missed(1)
  const headers = { 'idempotency-key': `replay ${dead.id}` }
  const made = await api('POST', `/webhook_deliveries/${dead.id}/replay`, { headers })
  expect(made).toMatchObject({
    status: 202,
    body: { data: { object: 'webhook_delivery', subscription_id: id, replayed_from: dead.id, status: 'pending' } },
  })
  expect((await api('POST', `/webhook_deliveries/${dead.id}/replay`, { headers })).body).toEqual(made.body)
  await until(async () => {
    const { body } = await api('GET', `/webhook_deliveries/${made.body.data.id}`)
    expect(body.data).toMatchObject({
      status: 'succeeded',
      attempt_count: 1,
      event_id: events[0],
      replayed_from: dead.id,
    })
    expect(body.data.payload).toMatchObject({ object: 'chat_business_account' })
  })
  expect(gotIds().filter((one) => one === events[0])).toHaveLength(1)
})

test('a held delivery cannot be replayed, and only one replay runs at a time, which can be cancelled', async () => {
  await missed(8)
  await api('PATCH', `/webhook_subscriptions/${id}`, { body: { status: 'paused' } })
  await inbound('held')
  await until(async () => expect((await deliveries('&status=pending')).length).toBeGreaterThan(0))
  const [pending] = await deliveries('&status=pending')
  expect(await api('POST', `/webhook_deliveries/${pending.id}/replay`)).toMatchObject({
    status: 409,
    body: { error: { type: 'conflict', code: 'delivery_pending' } },
  })
  const made = await start()
  expect(await start()).toMatchObject({ status: 409, body: { error: { code: 'replay_in_progress' } } })
  expect(await api('POST', `/webhook_deliveries/replays/${made.body.data.id}/cancel`)).toMatchObject({
    status: 200,
    body: { data: { status: 'cancelled', finished_at: expect.any(String) } },
  })
  expect((await start()).status).toBe(202)
})

test.each([
  [{ subscription_id: undefined }, 'subscription_id'],
  [{ subscription_id: 'wbs_nonsense' }, 'subscription_id'],
  [{ since: undefined }, 'since'],
  [{ since: 'yesterday' }, 'since'],
  [{ until: '2020-01-01T00:00:00Z' }, 'until'],
  [{ status: 'succeeded' }, 'status'],
  [{ event_types: [] }, 'event_types'],
  [{ dry_run: 'yes' }, 'dry_run'],
])('%j is refused by its name', async (wrong, param) => {
  expect(await start(wrong)).toMatchObject({ status: 400, body: { error: { code: 'invalid_field_value', param } } })
})

test('a subscription, a delivery, a replay that is not there is a 404', async () => {
  const unknown = '01JQ8Z6V0A7XJ2N5T9WQ3RBKCD'
  for (const answer of [
    await start({ subscription_id: `wbs_${unknown}` }),
    await api('POST', `/webhook_deliveries/wbd_${unknown}/replay`),
    await api('POST', '/webhook_deliveries/nonsense/replay'),
    await api('GET', `/webhook_deliveries/replays/rpl_${unknown}`),
    await api('POST', `/webhook_deliveries/replays/rpl_${unknown}/cancel`),
  ]) {
    expect(answer).toMatchObject({ status: 404, body: { error: { code: 'resource_not_found' } } })
  }
})

test('another organization sees neither deliveries nor replays, and its own list pages', async () => {
  const key = strangerKey
  const { own: dead } = await missed(1)
  const made = await start()
  const replayId: string = made.body.data.id
  for (const answer of [
    await start({}, { key }),
    await start({ dry_run: true }, { key }),
    await api('GET', `/webhook_deliveries/${dead.id}`, { key }),
    await api('POST', `/webhook_deliveries/${dead.id}/replay`, { key }),
    await api('GET', `/webhook_deliveries/replays/${replayId}`, { key }),
    await api('POST', `/webhook_deliveries/replays/${replayId}/cancel`, { key }),
  ]) {
    expect(answer.status).toBe(404)
  }
  expect((await api('GET', '/webhook_deliveries', { key })).body.data).toEqual([])
  expect((await api('GET', '/webhook_deliveries/replays', { key })).body.data).toEqual([])

  const body = { url: receiver.url, events: ['message.received'] }
  const own = (await api('POST', '/webhook_subscriptions', { key, body })).body.data.id
  const ids: string[] = []
  for (let n = 0; n < 3; n++) {
    await until(async () => {
      const { status, body } = await start({ subscription_id: own }, { key })
      expect(status).toBe(202)
      ids.unshift(body.data.id)
    })
  }
  const first = (await api('GET', '/webhook_deliveries/replays?limit=2', { key })).body
  expect(first.data.map((one: Json) => one.id)).toEqual(ids.slice(0, 2))
  const second = await api('GET', `/webhook_deliveries/replays?limit=2&cursor=${first.next_cursor}`, { key })
  expect(second.body).toMatchObject({ data: [{ id: ids[2] }], has_more: false, next_cursor: null })
})
