import { expect, test } from 'vitest'
import { client, newPhone } from './client.ts'

const { api, phone, sendText } = client()

test('a refused send leaves no contact behind', async () => {
  const to = newPhone()
  const refused = await sendText('Hello stranger', { to })
  expect(refused).toMatchObject({ status: 422, body: { error: { code: 'outside_24h_window' } } })
  const contacts = await api('GET', `/${phone}/contacts?phone_number=${encodeURIComponent(to)}`)
  expect(contacts.body.data).toEqual([])
})

const body = (changes: object) => ({
  messaging_product: 'chat',
  to: '+15550123456',
  type: 'text',
  text: { body: 'x' },
  ...changes,
})

test.each([
  [{ to: 'abc' }, 'invalid_phone_number', 'to'],
  [{ to: '+1' }, 'invalid_phone_number', 'to'],
  [{ to: undefined }, 'invalid_field_value', 'to'],
  [{ messaging_product: 'sms' }, 'invalid_field_value', 'messaging_product'],
  [{ type: 'carrier_pigeon' }, 'invalid_field_value', 'type'],
  [{ type: undefined }, 'invalid_field_value', 'type'],
  [{ text: undefined }, 'invalid_field_value', 'text'],
  [{ text: { body: '' } }, 'invalid_field_value', 'text.body'],
  [{ text: { body: '𝒳'.repeat(4097) } }, 'invalid_field_value', 'text.body'],
  [{ text: { body: 'a\u0000' } }, 'invalid_field_value', 'text.body'],
  [{ context: { message_id: 7 } }, 'invalid_field_value', 'context.message_id'],
])('%j is refused with the field that is wrong', async (changes, code, param) => {
  const refused = await api('POST', `/${phone}/messages`, { body: body(changes) })
  expect(refused).toMatchObject({ status: 400, body: { error: { type: 'invalid_request_error', code, param } } })
})

test('4,096 characters outside the basic plane are a text', async () => {
  expect((await sendText('𝒳'.repeat(4096))).status).toBe(200)
})

test.each(['{', '{"a":"\\ud800"}', `${'['.repeat(100)}${']'.repeat(100)}`, '"text"', 'null'])(
  'the body %s is a 400',
  async (text) => {
    expect((await api('POST', `/${phone}/messages`, { body: text })).status).toBe(400)
  },
)

test('what is too large, or no JSON, is refused as such', async () => {
  const large = await sendText('x'.repeat(300_000))
  expect(large).toMatchObject({ status: 413, body: { error: { code: 'payload_too_large' } } })
  const words = await api('POST', `/${phone}/messages`, { body: 'hello', headers: { 'content-type': 'text/plain' } })
  expect(words).toMatchObject({ status: 415, body: { error: { code: 'unsupported_media_type' } } })
})

const unknown = 'msg_01JQ8Z6V0A7XJ2N5T9WQ3RBKCD'

test.each([
  `/${phone}/messages/${unknown}`,
  `/${phone}/messages/msg_nonsense`,
  `/${phone}/messages/${unknown.toLowerCase()}`,
  `/999999999999/messages/${unknown}`,
  '/999999999999/messages',
  '/12/messages',
  `/${phone}/contacts/ctc_01JQ8Z6V0A7XJ2N5T9WQ3RBKCD`,
  `/${phone}/conversations/cnv_01JQ8Z6V0A7XJ2N5T9WQ3RBKCD`,
  '/webhook_subscriptions/wbs_01JQ8Z6V0A7XJ2N5T9WQ3RBKCD',
  '/webhook_deliveries/wbd_01JQ8Z6V0A7XJ2N5T9WQ3RBKCD',
  '/webhook_deliveries/wbd_7ZZZZZZZZZZZZZZZZZZZZZZZZZ',
  `/${phone}/templates/%00`,
  `/${phone}/templates/${'%F0%9D%92%B3'.repeat(513)}`,
  '/no/such/route',
])('%s is the one 404', async (path) => {
  const { status, body: answer } = await api('GET', path)
  expect(status).toBe(404)
  expect(answer.error).toEqual({
    type: 'not_found',
    code: 'resource_not_found',
    message: 'No such resource: look at the method, the path and the ids.',
    request_id: answer.error.request_id,
  })
})

test.each(['0', '101', '-1', 'abc', '1.5', ''])('limit %j is refused', async (limit) => {
  const refused = await api('GET', `/${phone}/messages?limit=${limit}`)
  expect(refused).toMatchObject({ status: 400, body: { error: { code: 'invalid_limit', param: 'limit' } } })
})

test('an id in a body that nothing has is a 404 that names its field', async () => {
  const contact = (await api('POST', `/${phone}/contacts`, { body: { phone_number: newPhone() } })).body.data.id
  const conversation = (await sendText('x')).body.data.conversation_id
  const label = { label_id: 'lbl_01JQ8Z6V0A7XJ2N5T9WQ3RBKCD' }
  const subscription = { subscription_id: 'wbs_01JQ8Z6V0A7XJ2N5T9WQ3RBKCD', since: '2026-03-01T00:00:00Z' }
  const asked: [path: string, body: object, param: string][] = [
    [`/${phone}/contacts/${contact}/labels`, label, 'label_id'],
    [`/${phone}/conversations/${conversation}/labels`, label, 'label_id'],
    [`/${phone}/contacts/bulk_label`, { ...label, contact_ids: [contact], operation: 'attach' }, 'label_id'],
    ['/webhook_deliveries/replays', subscription, 'subscription_id'],
    ['/webhook_deliveries/replays', { ...subscription, dry_run: true }, 'subscription_id'],
    [`/${phone}/messages`, { status: 'read', message_id: 'wamid.unknown' }, 'message_id'],
  ]
  for (const [path, body, param] of asked) {
    const answer = await api('POST', path, { body })
    expect(answer, path).toMatchObject({ status: 404, body: { error: { code: 'resource_not_found', param } } })
  }
})
