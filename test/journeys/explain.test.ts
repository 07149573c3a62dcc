import { afterAll, beforeAll, expect, test } from 'vitest'
import { admin } from './admin.ts'
import { client, type Json, until } from './client.ts'
import { type Receiver, startReceiver } from './receiver.ts'

const { api, phone, sendText } = client()
let receiver: Receiver
/** Others of this organization are deleted by their own tests. */
let subscription: Json

beforeAll(async () => {
  receiver = await startReceiver()
  const body = { url: receiver.url, events: ['message.sent', 'message.status'] }
  subscription = (await api('POST', '/webhook_subscriptions', { body })).body.data
})
afterAll(() => receiver.close())

const sentences = ({ history }: Json): string[] => history.map(({ what }: Json) => what)

test('explain tells the whole life of a message: request, acceptance, attempts, statuses, deliveries', async () => {
  const accepted = await sendText('explain me')
  const { id } = accepted.body.data
  await until(async () => {
    const { body } = await api('GET', `/${phone}/messages/${id}`)
    expect(body.data.status).toBe('read')
    expect(receiver.deliveries.filter(({ raw }) => raw.includes(body.data.message_id))).toHaveLength(4)
  })
  await until(async () => {
    const life = await admin('explain', id)
    const whats = sentences(life)
    expect(whats).toContain(`POST /v1/${phone}/messages: 200`)
    expect(whats).toContain('accepted')
    expect(whats).toContain('attempt 1 to send it: sent')
    expect(whats).toContain('is read')
    expect(whats.filter((what) => what === 'attempt 1 to deliver it: 200').length).toBeGreaterThanOrEqual(4)
    const times = life.history.map(({ at }: Json) => at).filter(Boolean)
    expect(times).toEqual(times.toSorted())
  })
  const { message_id: platformId } = (await api('GET', `/${phone}/messages/${id}`)).body.data
  expect(sentences(await admin('explain', platformId))).toContain('attempt 1 to send it: sent')
  expect(sentences(await admin('explain', `${id}:sent`))).toContain('message.sent is to be delivered')
  const { request_id: requestId } = accepted.body
  expect(sentences(await admin('explain', requestId))).toContain('attempt 1 to send it: sent')
  const delivery = receiver.deliveries.at(-1)?.headers['x-svc-delivery-id'] ?? ''
  // The last to come may not be recorded yet.
  await until(async () =>
    expect(sentences(await admin('explain', delivery))).toEqual([
      expect.stringMatching(/ is to be delivered$/),
      'attempt 1 to deliver it: 200',
      'is succeeded',
    ]),
  )
})

test('an event tells when it was recorded and published, who gets it, and who does not and why', async () => {
  const { id: own } = (
    await api('POST', '/webhook_subscriptions', { body: { url: receiver.url, events: ['customer.created'] } })
  ).body.data
  const { id: customer } = (await api('POST', '/customers', { body: { name: 'Heard of' } })).body.data
  await until(async () => {
    const { headers } = receiver.deliveries.find(({ raw }) => raw.includes(customer)) ?? {}
    const whats = sentences(await admin('explain', headers?.['x-svc-event-id'] ?? ''))
    expect(whats).toEqual(
      expect.arrayContaining([
        'customer.created was recorded by platform, with the change that it tells of',
        'was published to the event stream',
        'is succeeded',
        expect.stringMatching(/^customer\.created has no delivery to /),
      ]),
    )
  })
  await api('DELETE', `/webhook_subscriptions/${own}`)
})

test('why a request was refused is told, with the field', async () => {
  const { status, body } = await sendText('hi', { to: 'Ana' })
  expect(status).toBe(400)
  const { code, param, request_id: requestId } = body.error
  expect(param).toBe('to')
  const told = `POST /v1/${phone}/messages: 400, ${code} to`
  await until(async () => expect(sentences(await admin('explain', requestId))).toEqual([told]))
})

test('whatever has an id is explained by it, by the services that have a part in it', async () => {
  const sent = await sendText('and me')
  const { id, conversation_id: conversation } = sent.body.data
  const { contact } = (await api('GET', `/${phone}/conversations/${conversation}`)).body.data
  const customer = (await api('POST', '/customers', { body: { name: 'Bakery' } })).body.data
  const link = (await api('POST', `/customers/${customer.id}/setup_links`, { body: {} })).body.data
  const name = `explained_${Date.now()}`
  const components = [{ type: 'BODY', text: 'Good morning.' }]
  const body = { name, language: 'en_US', category: 'UTILITY', components }
  const template = (await api('POST', `/${phone}/templates`, { body })).body.data
  const me = (await api('GET', '/me')).body.data
  const label = (await api('POST', '/labels', { body: { name: `Explained ${Date.now()}` } })).body.data
  const form = new FormData()
  form.set('file', new Blob(['explain me'], { type: 'text/plain' }), 'explained.txt')
  const file = (await api('POST', `/${phone}/media`, { form })).body.data
  const told: [string, RegExp][] = [
    [id, /^is /],
    [conversation, /^no message waits to be sent in it$/],
    [contact.id, /^is there/],
    [customer.id, /^is pending/],
    [link.id, /^can be used until /],
    [subscription.id, /^is active: /],
    [template.id, /^(waits for the platform|is approved)/],
    [label.id, /^is there, and is attached to 0 contacts/],
    [me.organization.id, /^may do everything$/],
    [me.organization.id, /messages? waits? to be sent$/],
    [me.organization.id, /^\d+ of \d+ webhook subscriptions (is|are) active; /],
    [me.api_key.id, /^is good$/],
    [me.api_key.id, /^was used last: [A-Z]+ \/v1\/.*: \d+$/],
    [file.id, /^is stored, and can be sent until .*; no message carries it/],
    [phone, /^messaging takes its sends; /],
  ]
  for (const [one, words] of told) {
    await until(async () => expect(sentences(await admin('explain', one))).toContainEqual(expect.stringMatching(words)))
  }
})

test('an idempotency key leads to its request and to what that made', async () => {
  const key = `explain-${Date.now()}`
  const made = await api('POST', '/customers', { body: { name: 'Florist' }, headers: { 'Idempotency-Key': key } })
  const { organization } = (await api('GET', '/me')).body.data
  await until(async () => {
    const { history } = await admin('explain', '--organization', organization.id, '--key', key)
    expect(history.map(({ what }: Json) => what)).toEqual(
      expect.arrayContaining([
        'POST /v1/customers: 201',
        'the key was used',
        expect.stringMatching(/^was answered with 201/),
      ]),
    )
    expect(history.at(-1).details.answered_with).toBe(made.body.data.id)
  })
  await expect(admin('explain', '--organization', organization.id, '--key', 'unused')).rejects.toThrow(
    /resource_not_found.*Nothing is known of .*kept for 24 hours/,
  )
})

test('what is not there is said so, with where was looked', async () => {
  await expect(admin('explain', 'msg_01JQ8Z6V0A7XJ2N5T9WQ3RBKCD')).rejects.toThrow('resource_not_found')
  await expect(admin('explain', 'cus_01JQ8Z6V0A7XJ2N5T9WQ3RBKCD')).rejects.toThrow('customers, which are never deleted')
  await expect(admin('explain', 'team_01JQ8Z6V0A7XJ2N5T9WQ3RBKCD')).rejects.toThrow('is none of these: a message')
})
