import Stripe from 'stripe'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { client, newPhone, until } from './client.ts'
import { type Receiver, startReceiver } from './receiver.ts'

const { api, phone, sendText, inbound, sent } = client()
let receiver: Receiver
let secret: string
let subscription: string

beforeAll(async () => {
  receiver = await startReceiver()
  const created = await api('POST', '/webhook_subscriptions', {
    body: { url: receiver.url, events: ['message.received', 'message.status', 'message.sent', 'contact.created'] },
  })
  expect(created.status).toBe(201)
  secret = created.body.data.initial_secret
  subscription = created.body.data.id
})
afterAll(() => receiver.close())

/** Code that is not ours, and that reads this very header format. */
const verify = (raw: string, signature: string) =>
  new Stripe('sk_test_unused').webhooks.constructEvent(raw, signature, secret)

test('a message goes out, its statuses come back, and each is told by a signed webhook', async () => {
  const accepted = await sendText('Hello from a journey')
  expect(accepted).toMatchObject({ status: 200, body: { data: { object: 'message', type: 'text', status: 'queued' } } })
  const { id } = accepted.body.data
  await until(async () => {
    const { body } = await api('GET', `/${phone}/messages/${id}`)
    expect(body.data).toMatchObject({ id, status: 'read', direction: 'outbound', content: 'Hello from a journey' })
  })
  const { body } = await api('GET', `/${phone}/messages/${id}`)
  const upstreamId = body.data.message_id
  expect((await sent()).filter((entry) => entry.body.biz_opaque_callback_data === id)).toHaveLength(1)

  await until(() => {
    const events = receiver.deliveries.map(({ headers }) => headers['x-svc-event-id'])
    expect(events).toEqual(
      expect.arrayContaining([`${id}:sent`, `${upstreamId}:sent`, `${upstreamId}:delivered`, `${upstreamId}:read`]),
    )
  })
  for (const { headers, raw } of receiver.deliveries) {
    expect(() => verify(raw, headers['x-svc-signature'] ?? '')).not.toThrow()
    expect(() => verify(`${raw} `, headers['x-svc-signature'] ?? '')).toThrow()
    expect(headers['x-svc-signature-256']).toBe(headers['x-svc-signature'])
    expect(headers).toMatchObject({ 'x-svc-attempt': '1', 'content-type': 'application/json' })
    expect(headers['x-svc-delivery-id']).toMatch(/^wbd_/)
  }
})

test('message.sent and message.status have exactly the fields that the interface names', async () => {
  const { id } = (await sendText('Fields')).body.data
  await until(() => expect(receiver.of('message.sent').some(({ body }) => body.id === `${id}:sent`)).toBe(true))
  const native = receiver.of('message.sent').find(({ body }) => body.id === `${id}:sent`)
  expect(native?.headers['x-svc-source']).toBe('svc')
  expect(native?.body).toEqual({
    id: `${id}:sent`,
    type: 'message.sent',
    created_at: expect.stringMatching(/^\d{4}-.*Z$/),
    data: {
      session: phone,
      direction: 'outbound',
      from_me: true,
      timestamp: expect.stringMatching(/^\d{4}-.*Z$/),
      message: {
        id,
        provider_id: expect.stringMatching(/^wamid\./),
        type: 'text',
        body: 'Fields',
        from: expect.stringMatching(/^\+\d+$/),
        to: expect.stringMatching(/^\+\d+$/),
        status: 'sent',
        source: 'api',
        reply_to_provider_id: null,
      },
      conversation: { id: expect.stringMatching(/^cnv_/), status: 'open' },
      contact: {
        id: expect.stringMatching(/^ctc_/),
        phone_number: expect.stringMatching(/^\+/),
        name: expect.anything(),
      },
      meta: { phone_number_id: phone, display_phone_number: expect.stringMatching(/^\+/), provider: 'chat' },
    },
  })
  const upstreamId = native?.body.data.message.provider_id
  const isDelivered = (eventId: string | undefined) => eventId === `${upstreamId}:delivered`
  await until(() =>
    expect(receiver.of('message.status').some(({ headers }) => isDelivered(headers['x-svc-event-id']))).toBe(true),
  )
  const status = receiver.of('message.status').find(({ headers }) => isDelivered(headers['x-svc-event-id']))
  expect(status?.headers['x-svc-source']).toBe('upstream')
  expect(status?.body).toEqual({
    object: 'chat_business_account',
    entry: [
      {
        id: expect.any(String),
        changes: [
          {
            field: 'messages',
            value: {
              messaging_product: 'chat',
              metadata: { display_phone_number: expect.any(String), phone_number_id: phone },
              contacts: expect.any(Array),
              statuses: [
                expect.objectContaining({ id: upstreamId, status: 'delivered', recipient_id: expect.any(String) }),
              ],
            },
          },
        ],
      },
    ],
  })
  expect(status?.body.entry[0].changes[0].value.statuses[0]).not.toHaveProperty('biz_opaque_callback_data')
})

test('a customer writes in: contact, conversation, message and both events', async () => {
  const from = newPhone()
  const upstreamId = await inbound(from, 'Is anybody there?', 'Ana')
  await until(() => {
    expect(receiver.of('message.received').map(({ headers }) => headers['x-svc-event-id'])).toContain(upstreamId)
    expect(receiver.of('contact.created').some(({ body }) => body.data.contact.phone_number === from)).toBe(true)
  })
  const received = receiver.of('message.received').find(({ headers }) => headers['x-svc-event-id'] === upstreamId)
  const { svc, entry } = received?.body ?? {}
  expect(entry[0].changes[0].value.contacts).toEqual([{ profile: { name: 'Ana' }, chat_id: from.slice(1) }])
  expect(svc).toEqual({
    conversation_id: expect.stringMatching(/^cnv_/),
    contact_id: expect.stringMatching(/^ctc_/),
    message_id: expect.stringMatching(/^msg_/),
    phone_number_id: phone,
    labels: [],
    conversation: { status: 'open', assigned_to: null },
    contact: { name: 'Ana', phone_number: from },
  })
  const created = receiver.of('contact.created').find(({ body }) => body.data.contact.phone_number === from)
  expect(Object.keys(created?.body.data.contact).toSorted()).toEqual([
    'created_at',
    'email',
    'id',
    'metadata',
    'name',
    'object',
    'phone_number',
    'phone_number_id',
    'updated_at',
  ])
  const found = await api('GET', `/${phone}/contacts?phone_number=${encodeURIComponent(from)}`)
  expect(found.body.data).toMatchObject([{ id: svc.contact_id, phone_number: from, name: 'Ana' }])
  const conversation = await api('GET', `/${phone}/conversations/${svc.conversation_id}`)
  expect(conversation.body.data).toMatchObject({ status: 'open', unread_count: 1, contact: { id: svc.contact_id } })
  const message = await api('GET', `/${phone}/messages/${svc.message_id}`)
  expect(message.body.data).toMatchObject({
    direction: 'inbound',
    content: 'Is anybody there?',
    status: 'delivered',
    to: null,
  })
  // The window is open now.
  expect((await sendText('Yes', { to: from })).status).toBe(200)
})

test('a delivery can be found and read with its payload', async () => {
  const { id } = (await sendText('Look me up')).body.data
  await until(() => expect(receiver.of('message.sent').some(({ body }) => body.id === `${id}:sent`)).toBe(true))
  await until(async () => {
    const filters = new URLSearchParams({ event_id: `${id}:sent`, status: 'succeeded', subscription_id: subscription })
    const found = await api('GET', `/webhook_deliveries?${filters.toString()}`)
    expect(found.body.data).toMatchObject([{ event_type: 'message.sent', attempt_count: 1, response_status: 200 }])
    const read = await api('GET', `/webhook_deliveries/${found.body.data[0].id}`)
    expect(read.body.data.payload).toMatchObject({ id: `${id}:sent` })
  })
})
