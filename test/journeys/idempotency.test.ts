import { expect, test } from 'vitest'
import { admin } from './admin.ts'
import { client, until } from './client.ts'
import { newTenant } from './tenant.ts'

const { api, phone, sendText, sent } = client()
let keys = 0
const newKey = () => `journey-${process.pid}-${keys++}`

test('50 parallel sends with one key over two gateways: one message', async () => {
  const headers = { 'idempotency-key': newKey() }
  const answers = await Promise.all(Array.from({ length: 50 }, () => sendText('once', { headers })))
  const ids = new Set(answers.filter(({ status }) => status === 200).map(({ body }) => body.data.id))
  expect(ids.size).toBe(1)
  const others = answers.filter(({ status }) => status !== 200)
  expect(others.every(({ status, body }) => status === 409 && body.error.code === 'idempotency_in_progress')).toBe(true)
  const [id] = ids
  await until(async () => expect((await api('GET', `/${phone}/messages/${id}`)).body.data.status).toBe('read'))
  expect((await sent()).filter(({ body }) => body.biz_opaque_callback_data === id)).toHaveLength(1)
})

test('a replay has the bytes of the first answer and says so', async () => {
  const headers = { 'idempotency-key': newKey() }
  const first = await sendText('again', { headers })
  const second = await sendText('again', { headers })
  expect(second.body).toEqual(first.body)
  expect(second.headers['idempotent-replayed']).toBe('true')
  expect(first.headers['idempotent-replayed']).toBeUndefined()
  expect(second.headers['x-request-id']).not.toBe(first.headers['x-request-id'])
})

test('the order of the keys in the JSON does not matter; another body, or another path of another service, is refused', async () => {
  const headers = { 'idempotency-key': newKey() }
  const to = '+15550123456'
  const first = await api('POST', `/${phone}/messages`, {
    headers,
    body: { messaging_product: 'chat', to, type: 'text', text: { body: 'x', preview_url: false } },
  })
  expect(first.status).toBe(200)
  const reordered = await api('POST', `/${phone}/messages`, {
    headers,
    body: { text: { preview_url: false, body: 'x' }, type: 'text', to, messaging_product: 'chat' },
  })
  expect(reordered.body).toEqual(first.body)
  const other = await sendText('another', { headers })
  expect(other).toMatchObject({ status: 422, body: { error: { code: 'idempotency_key_reuse' } } })
  const elsewhere = await api('POST', '/webhook_subscriptions', {
    headers,
    body: { url: 'http://127.0.0.1:9/hook', events: ['message.sent'] },
  })
  expect(elsewhere).toMatchObject({ status: 422, body: { error: { code: 'idempotency_key_reuse' } } })
})

test('a refused request leaves no trace of its key', async () => {
  const headers = { 'idempotency-key': newKey() }
  expect((await sendText('', { headers })).status).toBe(400)
  expect((await sendText('now right', { headers })).status).toBe(200)
})

test('a retry has its answer after the feature was withdrawn, and nothing new is accepted', async () => {
  const { id, call } = await newTenant()
  const body = { url: 'http://127.0.0.1:9/hook', events: ['message.sent'] }
  const create = (key: string) => call('POST', '/webhook_subscriptions', body, { 'idempotency-key': key })
  const key = newKey()
  const first = await create(key)
  expect(first.status).toBe(201)
  await admin('organization', 'update', id, '--features', 'messaging')
  const refused = { status: 403, body: { error: { type: 'permission_error', code: 'feature_not_entitled' } } }
  expect(await call('POST', '/webhook_subscriptions', body)).toMatchObject(refused)
  expect(await create(newKey())).toMatchObject(refused)
  expect(await create(key)).toMatchObject({ status: 201, body: first.body, headers: { 'idempotent-replayed': 'true' } })
})

test('an answer with a secret is replayed with the secret', async () => {
  const headers = { 'idempotency-key': newKey() }
  const body = { url: 'http://127.0.0.1:9/hook', events: ['customer.created'] }
  const first = await api('POST', '/webhook_subscriptions', { headers, body })
  const second = await api('POST', '/webhook_subscriptions', { headers, body })
  expect(second.status).toBe(201)
  expect(second.body).toEqual(first.body)
  expect(second.body.data.initial_secret).toMatch(/^whsec_/)
  await api('DELETE', `/webhook_subscriptions/${first.body.data.id}`)
})

test.each(['', 'x'.repeat(256), 'ü'])('the key %j is refused', async (key) => {
  const refused = await sendText('x', { headers: { 'idempotency-key': key } })
  expect(refused).toMatchObject({ status: 400, body: { error: { param: 'Idempotency-Key' } } })
})
