import { afterAll, beforeAll, expect, test } from 'vitest'
import { admin } from './admin.ts'
import { client, type Json, newPhone, until } from './client.ts'
import { type Receiver, startReceiver } from './receiver.ts'

const { api, phone, control, inbound } = client()
const types = [
  'message.received',
  'message.sent',
  'message.status',
  'message.revoked',
  'message.edited',
  'contact.created',
  'contact.identity_updated',
]
const startedAt = new Date()
let receiver: Receiver
let displayDigits: string

beforeAll(async () => {
  receiver = await startReceiver()
  const created = await api('POST', '/webhook_subscriptions', { body: { url: receiver.url, events: types } })
  expect(created.status).toBe(201)
  const { body } = await api('GET', '/accounts')
  const account = body.data.find((one: Json) => one.phone_number_id === phone)
  displayDigits = account.phone_number.slice(1)
})
afterAll(() => receiver.close())

let ids = 0
const newWamid = () => `wamid.MORE${process.pid}.${ids++}`
const seconds = () => Math.floor(Date.now() / 1000)

/** The platform posts one change of the number. */
const change = (field: string, value: object) =>
  control('/control/callbacks', {
    object: 'whatsapp_business_account',
    entry: [
      {
        id: '1',
        changes: [
          {
            field,
            value: {
              messaging_product: 'whatsapp',
              metadata: { display_phone_number: displayDigits, phone_number_id: phone },
              ...value,
            },
          },
        ],
      },
    ],
  })

const messages = async (conversationId: string): Promise<Json[]> =>
  (await api('GET', `/${phone}/messages?conversation_id=${conversationId}&limit=100`)).body.data
const contactOf = async (number: string): Promise<Json> =>
  (await api('GET', `/${phone}/contacts?phone_number=${encodeURIComponent(number)}`)).body.data[0]
const conversationOf = async (number: string): Promise<Json> =>
  (await api('GET', `/${phone}/conversations?contact_id=${(await contactOf(number)).id}`)).body.data[0]
const told = (type: string, about: string) =>
  receiver.of(type).filter(({ raw }) => raw.includes(about) && !raw.includes(`${about}0`))

test('what is sent from the phone app is told as ours, with its statuses, and counts nothing unread', async () => {
  const [to, id] = [newPhone(), newWamid()]
  await change('smb_message_echoes', {
    message_echoes: [
      { from: displayDigits, to: to.slice(1), id, timestamp: `${seconds()}`, type: 'text', text: { body: 'By hand' } },
    ],
  })
  await until(() => expect(told('message.sent', id)).toHaveLength(1))
  const [sent] = told('message.sent', id)
  expect(sent?.body.data).toMatchObject({
    message: { provider_id: id, type: 'text', body: 'By hand', from: `+${displayDigits}`, to, source: 'app' },
    contact: { phone_number: to },
  })
  await change('messages', {
    statuses: [{ id, status: 'delivered', timestamp: `${seconds()}`, recipient_id: to.slice(1) }],
  })
  const path = `/${phone}/messages/${sent?.body.data.message.id}`
  await until(async () => expect((await api('GET', path)).body.data).toMatchObject({ status: 'delivered', to }))
  await until(() => expect(receiver.of('message.status').some(({ raw }) => raw.includes(id))).toBe(true))
  await until(async () => expect((await conversationOf(to)).last_message_at).toEqual(expect.any(String)))
  expect(await conversationOf(to)).toMatchObject({ unread_count: 0, last_inbound_at: null })
})

test('an edit and a revoke are told with the fields that the interface names; what is read follows', async () => {
  const from = newPhone()
  const id = await inbound(from, 'first words')
  const part = { from: from.slice(1), timestamp: `${seconds()}` }
  const edited = { original_message_id: id, message: { type: 'text', text: { body: 'other words' } } }
  await change('messages', { messages: [{ ...part, id: newWamid(), type: 'edit', edit: edited }] })
  await until(() => expect(told('message.edited', id)).toHaveLength(1))
  const conversation = await conversationOf(from)
  const [message] = await messages(conversation.id)
  expect(message).toMatchObject({ content: 'other words', message_id: id })
  const identifiers = {
    message_id: message.id,
    provider_id: id,
    conversation_id: conversation.id,
    contact_id: conversation.contact.id,
    contact_phone_number: from,
    phone_number_id: phone,
    display_phone_number: `+${displayDigits}`,
  }
  const time = expect.stringMatching(/^\d{4}-.*\.\d{3}Z$/)
  expect(told('message.edited', id)[0]?.body).toEqual({
    id: expect.stringMatching(/^evt_/),
    type: 'message.edited',
    created_at: time,
    data: {
      ...identifiers,
      new_content: 'other words',
      original_content: 'first words',
      edited_at: time,
      edit_history: [{ content: 'other words', edited_at: time }],
    },
  })
  await change('messages', {
    messages: [{ ...part, id: newWamid(), type: 'revoke', revoke: { original_message_id: id } }],
  })
  await until(() => expect(told('message.revoked', id)).toHaveLength(1))
  expect(told('message.revoked', id)[0]?.body).toEqual({
    id: expect.stringMatching(/^evt_/),
    type: 'message.revoked',
    created_at: time,
    data: { ...identifiers, revoked_at: time },
  })
  expect((await messages(conversation.id)).map(({ content }) => content)).toEqual(['first words'])
  expect(await conversationOf(from)).toMatchObject({ unread_count: 1 })
})

test('history and the address book make rows with their old times, and no events', async () => {
  const [customer, friend] = [newPhone(), newPhone()]
  const [first, second] = [newWamid(), newWamid()]
  const at = seconds() - 100 * 24 * 60 * 60
  const old = (id: string, from: string, n: number) => ({
    from,
    id,
    timestamp: `${at + n}`,
    type: 'text',
    text: { body: id },
    history_context: { status: 'READ' },
  })
  await change('history', {
    history: [
      {
        metadata: { phase: 0, chunk_order: 1, progress: 100 },
        threads: [
          { id: customer.slice(1), messages: [old(first, customer.slice(1), 0), old(second, displayDigits, 60)] },
        ],
      },
    ],
  })
  await change('smb_app_state_sync', {
    state_sync: [
      {
        type: 'contact',
        contact: { full_name: 'Old Friend', first_name: 'Old', phone_number: friend },
        action: 'add',
        metadata: { timestamp: `${seconds()}` },
      },
    ],
  })
  await until(async () => expect(await contactOf(friend)).toMatchObject({ name: 'Old Friend', phone_number: friend }))
  await until(async () => expect(await contactOf(customer)).toBeDefined())
  await until(async () =>
    expect(await messages((await conversationOf(customer)).id)).toMatchObject([
      {
        message_id: second,
        direction: 'outbound',
        status: 'read',
        created_at: new Date((at + 60) * 1000).toISOString(),
      },
      { message_id: first, direction: 'inbound', status: 'read', created_at: new Date(at * 1000).toISOString() },
    ]),
  )
  expect(await conversationOf(customer)).toMatchObject({
    unread_count: 0,
    last_message_at: new Date((at + 60) * 1000).toISOString(),
  })
  // What comes after them is told; they are not.
  const from = newPhone()
  await inbound(from, 'after')
  await until(() => expect(told('contact.created', from)).toHaveLength(1))
  for (const about of [customer, friend, first, second]) {
    expect(receiver.deliveries.filter(({ raw }) => raw.includes(about))).toEqual([])
  }
})

/** What the platform says of a user id that it issued anew, by field. */
const issuedAnew = {
  messages: (previous_user_id: string, user_id: string) => {
    const system = { type: 'user_changed_user_id', body: 'x', previous_user_id, user_id }
    return { messages: [{ id: newWamid(), timestamp: `${seconds()}`, type: 'system', system }] }
  },
  user_id_update: (previous: string, current: string) => ({
    user_id_update: [{ detail: 'x', user_id: { previous, current }, timestamp: seconds() }],
  }),
}

test.each(['messages', 'user_id_update'] as const)(
  'a user id that is issued anew is told once %s says so, and the next message is of the same contact',
  async (field) => {
    const from = newPhone()
    const before = `US.${process.pid}${field.length}1`
    const after = `US.${process.pid}${field.length}2`
    const { id } = await control('/control/inbound', {
      phone_number_id: phone,
      message: { from: from.slice(1), type: 'text', text: { body: 'hi' } },
      contact: { profile: { name: 'Rotating' }, user_id: before },
    })
    await until(() => expect(told('message.received', id)).toHaveLength(1))
    await change(field, issuedAnew[field](before, after))
    await until(() => expect(told('contact.identity_updated', after)).toHaveLength(1))
    const contact = await contactOf(from)
    expect(contact).toMatchObject({ bsuid: after })
    expect(told('contact.identity_updated', after)[0]?.body.data).toEqual({
      contact: { id: contact.id, object: 'contact', phone_number: from, name: 'Rotating', phone_number_id: phone },
      previous: { bsuid: before, parent_bsuid: null, phone_number: from },
      current: { bsuid: after, parent_bsuid: null, phone_number: from },
      changed_at: expect.any(String),
    })
  },
)

test('who wants no marketing messages gets none, until it wants them again', async () => {
  const to = newPhone()
  const name = `more_${process.pid}`
  const components = [{ type: 'BODY', text: 'Everything must go today.' }]
  const body = { name, language: 'en_US', category: 'MARKETING', components }
  expect((await api('POST', `/${phone}/templates`, { body })).status).toBe(201)
  await until(async () => {
    const { body: answer } = await api('GET', `/${phone}/templates/${name}?language=en_US`)
    expect(answer.data.status).toBe('approved')
  })
  const template = { name, language: 'en_US' }
  const send = async () =>
    api('POST', `/${phone}/messages`, { body: { messaging_product: 'chat', to, type: 'template', template } })
  const wish = (value: string) =>
    change('user_preferences', {
      contacts: [{ wa_id: to.slice(1) }],
      user_preferences: [
        { wa_id: to.slice(1), detail: 'x', category: 'marketing_messages', value, timestamp: seconds() },
      ],
    })
  expect((await send()).status).toBe(200)
  await wish('stop')
  await until(async () => {
    const answer = await send()
    expect([answer.status, answer.body.error?.code]).toEqual([422, 'marketing_opted_out'])
  })
  await new Promise((resolve) => setTimeout(resolve, 1_100))
  await wish('resume')
  await until(async () => expect((await send()).status).toBe(200))
})

test('however the platform writes a number, its reply is of the contact that was written to', async () => {
  const mobile = `+55319${String(80_000_000 + (process.pid % 10_000) * 100 + ids)}`
  const written = mobile.slice(1, 5) + mobile.slice(6)
  const name = `hello_${process.pid}`
  const components = [{ type: 'BODY', text: 'Your order has shipped.' }]
  await api('POST', `/${phone}/templates`, { body: { name, language: 'en_US', category: 'UTILITY', components } })
  const template = { name, language: 'en_US' }
  await until(async () => {
    const sent = await api('POST', `/${phone}/messages`, {
      body: { messaging_product: 'chat', to: mobile, type: 'template', template },
    })
    expect(sent.status).toBe(200)
  })
  await until(async () => expect((await contactOf(`+${written}`))?.phone_number).toBe(mobile))
  const id = await inbound(`+${written}`, 'thanks')
  await until(() => expect(told('message.received', id)).toHaveLength(1))
  const contact = await contactOf(mobile)
  expect(told('message.received', id)[0]?.body.svc).toMatchObject({ contact_id: contact.id })
  expect(told('contact.created', written)).toEqual([])
})

test('all that came is worked through again, and nothing is doubled', async () => {
  const from = newPhone()
  const id = await inbound(from, 'once')
  await until(() => expect(told('message.received', id)).toHaveLength(1))
  const before = await messages((await conversationOf(from)).id)
  const deliveries = receiver.deliveries.map(({ headers }) => headers['x-svc-event-id'])
  const answer = await admin('callbacks', 'redrive', '--since', startedAt.toISOString())
  expect(answer).toMatchObject({ service: 'messaging', next_since: null })
  expect(answer.callbacks).toBeGreaterThan(8)
  const last = await inbound(from, 'after')
  await until(() => expect(told('message.received', last)).toHaveLength(1))
  const conversation = await conversationOf(from)
  expect(conversation.unread_count).toBe(2)
  expect((await messages(conversation.id)).slice(1)).toEqual(before)
  const fresh = receiver.deliveries.map(({ headers }) => headers['x-svc-event-id']).slice(deliveries.length)
  expect(fresh.filter((eventId) => deliveries.includes(eventId))).toEqual([])
})
