import { until } from '@app/test/until.ts'
import { beforeAll, expect, test } from 'vitest'
import { accept, type TestMessaging } from '../testing/app.ts'
import { messagingThatSends } from '../testing/sending.ts'

const sending = messagingThatSends()
const { eventually } = sending
let app: TestMessaging
beforeAll(() => void ({ app } = sending))

let phone = 0
/** A send that gets this answer, while all others are accepted. */
async function sendFor(status: number, answer: object) {
  app.respondWith((call, response, n) => {
    if (call.text !== 'odd') return accept(call, response, n)
    response.writeHead(status, { 'content-type': 'application/json' })
    response.end(JSON.stringify(answer))
  })
  const { id } = await app.send('odd', { to: `+1555020${1000 + phone++}` })
  return id
}

/** Another conversation goes on. */
async function expectOthersSent() {
  const { id } = await app.send('fine', { to: `+1555020${1000 + phone++}` })
  await eventually(id, 'sent')
}

const refusal = (error: object) => ({ error: { message: 'no', code: 131026, ...error } })
const acceptance = (id: string) => ({ messaging_product: 'whatsapp', contacts: [], messages: [{ id }] })

test.each([
  ['half a character', refusal({ error_data: { details: 'cut off in \ud83d' } }), 'cut off in \ufffd'],
  ['U+0000', refusal({ message: 'a\0b' }), 'ab'],
  ['a text of 600 kB', refusal({ message: 'x'.repeat(600_000) }), 'x'.repeat(1_000)],
])('a refusal with %s fails its message, and says as much of it as can be kept', async (_, answer, message) => {
  const id = await sendFor(400, answer)
  await eventually(id, 'failed')
  const rows = await app.sql`select error from messages where id = ${id}`
  expect(rows).toMatchObject([{ error: { code: 'recipient_unreachable', provider_code: 131026, message } }])
  await expectOthersSent()
})

test.each([
  ['a code of ten digits', 400, refusal({ code: 9_999_999_999 })],
  ['a code with a fraction', 400, refusal({ code: 131026.5 })],
  ['an id of 5,000 characters', 200, acceptance('x'.repeat(5_000))],
  ['an acceptance that comes with a 500', 500, acceptance('wamid.FAULT')],
])("an answer with %s is not the platform's: its outcome is unknown", async (_, status, answer) => {
  const id = await sendFor(status, answer)
  await until(async () =>
    expect(await app.sql`select 1 from sends where message_id = ${id} and parked_until > now()`).toHaveLength(1),
  )
  await expectOthersSent()
})

test('an outcome that cannot be recorded, since another message has its id, stops no other', async () => {
  await eventually(await sendFor(200, acceptance('wamid.SAME')), 'sent')
  const id = await sendFor(200, acceptance('wamid.SAME'))
  await until(async () => expect(app.calls.filter(({ messageId }) => messageId === id)).toHaveLength(1))
  await expectOthersSent()
  // As after a death in the call: it is found begun when its lease is over.
  await app.sql`
    update send_lanes set held_until = '-infinity' where id = (select lane from sends where message_id = ${id})
  `
  app.dispatcher.wake()
  await until(async () =>
    expect(await app.sql`select 1 from sends where message_id = ${id} and parked_until > now()`).toHaveLength(1),
  )
  expect(app.calls.filter(({ messageId }) => messageId === id)).toHaveLength(1)
})
