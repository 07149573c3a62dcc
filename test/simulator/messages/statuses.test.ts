import { expect, test } from 'vitest'
import { person, startTrial } from '../trial.ts'

const text = { type: 'text', text: { body: 'hi' } }
const template = { type: 'template', template: { name: 'order_ok', language: { code: 'en_US' } } }

test('sends sent, delivered, read, with what the send carried', async () => {
  const { send, settled, receiver, number } = await startTrial()
  const { body } = await send(number, { ...template, biz_opaque_callback_data: 'msg_01' })
  await settled()
  const told = { id: body.messages?.[0]?.id, recipient_id: person, biz_opaque_callback_data: 'msg_01' }
  const pricing = { billable: true, pricing_model: 'PMP', category: 'utility', type: 'regular' }
  const conversation = { id: expect.stringMatching(/^[0-9a-f]{32}$/), origin: { type: 'utility' } }
  const timestamp = expect.stringMatching(/^\d{10}$/)
  const ending = { ...conversation, expiration_timestamp: timestamp }
  expect(receiver.statuses()).toEqual([
    { ...told, status: 'sent', timestamp, conversation: ending, pricing },
    { ...told, status: 'delivered', timestamp, conversation, pricing },
    { ...told, status: 'read', timestamp, conversation },
  ])
  expect(receiver.changes()[0]).toMatchObject({
    account: number.business_account_id,
    field: 'messages',
    value: {
      messaging_product: 'whatsapp',
      metadata: {
        display_phone_number: number.display_phone_number.replaceAll(/\D/g, ''),
        phone_number_id: number.phone_number_id,
      },
      contacts: [{ wa_id: person }],
    },
  })
})

test('waits status_delay_ms before each', async () => {
  const { send, settled, receiver, number } = await startTrial({ settings: { status_delay_ms: 150 } })
  await send(number, template)
  const sentAt = performance.now()
  await settled()
  expect(performance.now() - sentAt).toBeGreaterThan(2 * 150)
  expect(receiver.callbacks).toHaveLength(3)
})

test('leaves the conversation out from v24 on, and prices a free-form message as service', async () => {
  const { send, receive, settled, receiver, number } = await startTrial()
  await receive(number)
  await send(number, text, 'v24.0')
  await settled()
  const [sent] = receiver.statuses()
  expect(sent).not.toHaveProperty('conversation')
  expect(sent).toMatchObject({
    pricing: { billable: false, pricing_model: 'PMP', category: 'service', type: 'free_customer_service' },
  })
})

test('names a user id, and the profile of who once wrote', async () => {
  const { send, receive, settled, receiver, number } = await startTrial({ settings: { statuses: ['sent'] } })
  await receive(number, { from_user_id: 'US.1349' })
  await send(number, { ...text, to: undefined, recipient: 'US.1349' })
  await settled()
  const [status] = receiver.statuses()
  expect(status).toMatchObject({ recipient_user_id: 'US.1349' })
  expect(status).not.toHaveProperty('recipient_id')
  expect(receiver.changes().at(-1)?.value.contacts).toEqual([{ profile: { name: 'User 1234' }, user_id: 'US.1349' }])
})

test('follows a reaction with sent alone', async () => {
  const { send, receive, settled, receiver, number } = await startTrial()
  const message_id = await receive(number)
  await send(number, { type: 'reaction', reaction: { message_id, emoji: '👍' } })
  await settled()
  expect(receiver.statuses()).toMatchObject([{ status: 'sent' }])
})

test('fails a reaction to an unknown message, or to a reaction, afterwards', async () => {
  const { send, receive, settled, receiver, number } = await startTrial()
  const unknown = { type: 'reaction', reaction: { message_id: 'wamid.unknown', emoji: '👍' } }
  await receive(number)
  const { body } = await send(number, unknown)
  await send(number, { type: 'reaction', reaction: { message_id: body.messages?.[0]?.id, emoji: '👍' } })
  await settled()
  const failed = { status: 'failed', errors: [{ code: 131009 }] }
  expect(receiver.statuses()).toMatchObject([failed, failed])
  expect(receiver.changes().at(-1)?.value).not.toHaveProperty('contacts')
})

test('sends the statuses that are set, in reverse and doubled when asked', async () => {
  const { send, set, settled, receiver, number } = await startTrial({ settings: { status_delay_ms: 20 } })
  await set({ statuses: [] })
  await send(number, template)
  await settled()
  expect(receiver.callbacks).toEqual([])

  await set({ statuses: ['read', 'sent'], reorder: true, duplicates: true })
  await send(number, template)
  await settled()
  const statuses = receiver.statuses().map(({ status }) => status)
  expect(statuses[0]).toBe('read')
  expect(statuses.at(-1)).toBe('sent')
  expect(statuses.filter((status) => status === 'sent')).toHaveLength(2)
  expect(statuses).toHaveLength(4)
  // Without `delivered`, `read` bears the second price.
  expect(receiver.statuses()[0]).toHaveProperty('pricing')
})
