import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import { clientOf, type Json, newPhone, until } from '../../journeys/client.ts'
import type { Delivery } from '../../journeys/receiver.ts'
import type { Own } from '../own-stack.ts'

const people = 20
const everyMs = 120
const ownNumber = '15550001111'
const at = () => `${Math.floor(Date.now() / 1000)}`

/** What comes of one person: a message, its edit, its revoke, an answer by hand, another user id, a number given up. */
function partsOf(from: string) {
  const id = `wamid.K${from}`
  const part = (suffix: string, type: string, more: object) => ({
    from,
    id: `${id}.${suffix}`,
    timestamp: at(),
    type,
    ...more,
  })
  const edit = { original_message_id: `${id}.in`, message: { type: 'text', text: { body: 'edited' } } }
  const system = { type: 'user_changed_user_id', user_id: `US.B${from}`, body: 'changed' }
  const messages = [
    part('edit', 'edit', { edit }),
    part('revoke', 'revoke', { revoke: { original_message_id: `${id}.in` } }),
    part('in', 'text', { text: { body: 'first' }, from_user_id: `US.A${from}` }),
    part('system', 'system', { system, from_user_id: `US.A${from}` }),
  ]
  const echo = { from: ownNumber, to: from, id: `${id}.echo`, timestamp: at(), type: 'text', text: { body: 'by hand' } }
  return { messages, echo }
}

/** Callbacks of every kind, one person after the other; answers what waits for all that comes of them, and judges it. */
export function postCallbacks(own: Own): () => Promise<void> {
  const client = clientOf(own.stack.read())
  const numbers = Array.from({ length: people }, newPhone)
  const posting = numbers.map(async (number, n) => {
    await sleep(n * everyMs)
    await postTwice(client, number.slice(1))
  })
  return async () => {
    await Promise.all(posting)
    await untilTold(own, numbers)
    for (const number of numbers) await expectRecorded(client, number)
  }
}

/** As the platform does when an answer is late. */
async function postTwice({ phone, control }: ReturnType<typeof clientOf>, from: string) {
  const change = (field: string, value: object) => ({
    field,
    value: {
      messaging_product: 'whatsapp',
      metadata: { display_phone_number: ownNumber, phone_number_id: phone },
      ...value,
    },
  })
  const { messages, echo } = partsOf(from)
  const changes = [
    ...messages.map((message) => change('messages', { messages: [message] })),
    change('smb_message_echoes', { message_echoes: [echo] }),
  ]
  const body = { object: 'whatsapp_business_account', entry: [{ id: '1', changes }] }
  await control('/control/callbacks', body)
  await control('/control/callbacks', body)
}

/** A delivery may come twice, an event may not. */
async function untilTold({ receiver }: Own, numbers: string[]) {
  const eventIdOf = ({ headers }: Delivery) => headers['x-svc-event-id'] ?? ''
  const providerIdOf = ({ body: { data } }: Delivery): string => data.message?.provider_id ?? data.provider_id
  const idsOf = (suffix: string) => numbers.map((number) => `wamid.K${number.slice(1)}.${suffix}`)
  const expected = [
    { type: 'message.sent', keyOf: providerIdOf, keys: idsOf('echo') },
    { type: 'message.revoked', keyOf: providerIdOf, keys: idsOf('in') },
    { type: 'message.edited', keyOf: providerIdOf, keys: idsOf('in') },
    { type: 'message.received', keyOf: eventIdOf, keys: idsOf('in') },
    { type: 'contact.created', keyOf: ({ body }: Delivery): string => body.data.contact.phone_number, keys: numbers },
  ]
  for (const { type, keyOf, keys } of expected) {
    const ours = () => receiver.of(type).filter((delivery) => keys.includes(keyOf(delivery)))
    await until(() => expect(new Set(ours().map(keyOf)), type).toEqual(new Set(keys)), 150_000)
    expect(new Set(ours().map(eventIdOf)).size, type).toBe(people)
  }
}

async function expectRecorded({ api, phone }: ReturnType<typeof clientOf>, number: string) {
  const contacts = (await api('GET', `/${phone}/contacts?phone_number=${encodeURIComponent(number)}`)).body.data
  expect(contacts).toHaveLength(1)
  const { body: list } = await api('GET', `/${phone}/conversations?contact_id=${contacts[0].id}`)
  expect(list.data).toHaveLength(1)
  const [conversation] = list.data
  expect(conversation.unread_count).toBe(1)
  const listed = await api('GET', `/${phone}/messages?conversation_id=${conversation.id}`)
  const rows: string[] = listed.body.data.map((row: Json) => `${row.message_id} ${row.content}`)
  const id = `wamid.K${number.slice(1)}`
  expect(rows).toContain(`${id}.in first`)
  expect(rows).toContain(`${id}.echo by hand`)
  expect(new Set(rows).size).toBe(rows.length)
}
