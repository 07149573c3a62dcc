import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { clientOf, type Json, newPhone, until } from '../journeys/client.ts'
import { kill, ownStack } from './own-stack.ts'

const own = ownStack()

const people = 40
const ownNumber = '15550001111'
const at = () => `${Math.floor(Date.now() / 1000)}`

/** What comes of one person: a message, its edit, its revoke, an answer by hand, another user id, a number given up. */
function partsOf(from: string, n: number) {
  const id = `wamid.K${n}`
  const part = (suffix: string, type: string, more: object) => ({
    from,
    id: `${id}.${suffix}`,
    timestamp: at(),
    type,
    ...more,
  })
  const edit = { original_message_id: `${id}.in`, message: { type: 'text', text: { body: 'edited' } } }
  const system = { type: 'user_changed_user_id', user_id: `US.B${n}`, body: 'changed' }
  const messages = [
    part('edit', 'edit', { edit }),
    part('revoke', 'revoke', { revoke: { original_message_id: `${id}.in` } }),
    part('in', 'text', { text: { body: 'first' }, from_user_id: `US.A${n}` }),
    part('system', 'system', { system, from_user_id: `US.A${n}` }),
  ]
  const echo = { from: ownNumber, to: from, id: `${id}.echo`, timestamp: at(), type: 'text', text: { body: 'by hand' } }
  return { messages, echo }
}

test(
  'kill -9 of messaging and directory under callbacks of every kind: each does what it does once',
  { timeout: 240_000 },
  async () => {
    const client = clientOf(own.stack.read())
    const { api, phone, control } = client
    const events = ['message.received', 'message.sent', 'message.revoked', 'message.edited', 'contact.created']
    const created = await api('POST', '/webhook_subscriptions', { body: { url: own.receiver.url, events } })
    expect(created.status).toBe(201)
    const phones = Array.from({ length: people }, newPhone)
    const change = (field: string, value: object) => ({
      field,
      value: {
        messaging_product: 'whatsapp',
        metadata: { display_phone_number: ownNumber, phone_number_id: phone },
        ...value,
      },
    })
    const posting = phones.map(async (number, n) => {
      await sleep(n * 60)
      const { messages, echo } = partsOf(number.slice(1), n)
      const changes = [
        ...messages.map((message) => change('messages', { messages: [message] })),
        change('smb_message_echoes', { message_echoes: [echo] }),
      ]
      // Twice, as the platform does when an answer is late.
      const body = { object: 'whatsapp_business_account', entry: [{ id: '1', changes }] }
      await control('/control/callbacks', body)
      await control('/control/callbacks', body)
    })
    for (const service of ['messaging', 'directory', 'messaging', 'directory', 'messaging']) {
      await sleep(300)
      await kill(own, service)
    }
    await Promise.all(posting)

    const ids = (type: string, of: (body: Json) => string) => own.receiver.of(type).map(({ body }) => of(body))
    const providerId = (body: Json): string => body.data.message?.provider_id ?? body.data.provider_id
    const expected = (suffix: string) => phones.map((_, n) => `wamid.K${n}.${suffix}`).toSorted()
    await until(() => {
      expect(new Set(ids('message.sent', providerId))).toEqual(new Set(expected('echo')))
      expect(new Set(ids('message.revoked', providerId))).toEqual(new Set(expected('in')))
      expect(new Set(ids('message.edited', providerId))).toEqual(new Set(expected('in')))
      expect(new Set(own.receiver.of('message.received').map(({ headers }) => headers['x-svc-event-id']))).toEqual(
        new Set(expected('in')),
      )
    }, 150_000)
    // A delivery may come twice, an event may not.
    for (const type of ['message.sent', 'message.revoked', 'message.edited', 'contact.created']) {
      expect(new Set(ids(type, ({ id }) => id)).size, type).toBe(people)
    }
    for (const [n, number] of phones.entries()) {
      const contacts = (await api('GET', `/${phone}/contacts?phone_number=${encodeURIComponent(number)}`)).body.data
      expect(contacts).toHaveLength(1)
      const [conversation, ...more] = (await api('GET', `/${phone}/conversations?contact_id=${contacts[0].id}`)).body
        .data
      expect(more).toEqual([])
      expect(conversation.unread_count).toBe(1)
      const listed = await api('GET', `/${phone}/messages?conversation_id=${conversation.id}`)
      const rows = listed.body.data.map((row: Json) => `${row.message_id} ${row.content}`)
      expect(rows).toContain(`wamid.K${n}.in first`)
      expect(rows).toContain(`wamid.K${n}.echo by hand`)
      expect(new Set(rows).size).toBe(rows.length)
    }
  },
)
