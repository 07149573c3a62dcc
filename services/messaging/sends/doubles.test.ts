import { until } from '@app/test/until.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { explainMessage } from '../explain/explain-message.ts'
import { accept, type TestMessaging, testMessaging } from '../testing/app.ts'
import { platformOf, statusPart } from '../testing/callbacks.ts'

let app: TestMessaging
let platform: ReturnType<typeof platformOf>
beforeAll(async () => {
  app = await testMessaging()
  platform = platformOf(app)
  await app.setSender({ settings: { ...app.settings, unknown_outcome: 'resend' } })
})
afterAll(() => app.close())

const settled = () => until(async () => expect(await app.sql`select 1 from callback_items`).toEqual([]))
const stateOf = async (id: string) => {
  const [row] =
    await app.sql`select status, rank, error ->> 'provider_code' as code, upstream_id from messages where id = ${id}`
  return row
}
const events = async () => (await app.events()).map((event) => event.id)

let recipients = 0

/** A message whose first call ends without an answer, and that is sent again; its second id is the platform's answer. */
async function sendTwice(answerSecond = accept) {
  app.respondWith((_call, response) => response.destroy())
  const { id, conversationId } = await app.send('twice', { to: `+1555034${String(recipients++).padStart(4, '0')}` })
  await until(async () =>
    expect(await app.sql`select 1 from sends where message_id = ${id} and parked_until > now()`).toHaveLength(1),
  )
  app.respondWith(answerSecond)
  await app.sql`update sends set parked_until = now() - interval '1 s' where message_id = ${id}`
  await app.sql`update send_lanes set due_at = now() where id = ${conversationId}`
  app.dispatcher.wake()
  await until(async () => expect(await app.sql`select 1 from sends where message_id = ${id}`).toEqual([]))
  return { id, first: `wamid.FIRST.${id}`, second: `wamid.OUT${app.calls.length}` }
}

type Word = 'delivered' | 'read' | 'failed'

async function tell(id: string, upstreamId: string, word: Word) {
  const errors = word === 'failed' ? [{ code: 131026, title: 'Message undeliverable' }] : undefined
  await platform.messages({ statuses: [statusPart(upstreamId, word, { biz_opaque_callback_data: id, errors })] })
  await settled()
}

test.each<[Word, Word, object]>([
  ['delivered', 'failed', { status: 'delivered', rank: 4, code: null }],
  ['failed', 'read', { status: 'read', rank: 5, code: null }],
  ['read', 'delivered', { status: 'read', rank: 5, code: null }],
  ['failed', 'failed', { status: 'failed', rank: 6, code: '131026' }],
])(
  'of a message that went out twice, %s and %s, in either order, each is told and what came furthest counts',
  async (one, other, end) => {
    for (const isTurned of [false, true]) {
      const { id, first, second } = await sendTwice()
      const told = [() => tell(id, first, one), () => tell(id, second, other)]
      for (const step of isTurned ? told.toReversed() : told) await step()
      for (const step of told) await step()
      expect(await stateOf(id)).toEqual({ ...end, upstreamId: second })
      expect(
        (await events()).filter((event) => [first, second, id].some((start) => event.startsWith(`${start}:`))),
      ).toEqual([
        `${id}:sent`,
        ...(isTurned ? [`${second}:${other}`, `${first}:${one}`] : [`${first}:${one}`, `${second}:${other}`]),
      ])
    }
  },
)

test('all that was told of one of them counts when the other fails', async () => {
  const { id, first, second } = await sendTwice()
  await tell(id, first, 'delivered')
  await tell(id, first, 'read')
  await tell(id, second, 'failed')
  expect(await stateOf(id)).toEqual({ status: 'read', rank: 5, code: null, upstreamId: second })
})

test('statuses of both in one callback count as in two', async () => {
  const { id, first, second } = await sendTwice()
  const ours = { biz_opaque_callback_data: id }
  const failed = statusPart(second, 'failed', { ...ours, errors: [{ code: 131026 }] })
  await platform.messages({ statuses: [failed, statusPart(first, 'delivered', ours)] })
  await settled()
  expect(await stateOf(id)).toEqual({ status: 'delivered', rank: 4, code: null, upstreamId: second })
})

test('a second id is known from the answer on, though a callback had told of the first: it is explained, and found without ours', async () => {
  const { id, first, second } = await sendTwice((call, response, n) => {
    void tell(call.messageId, `wamid.FIRST.${call.messageId}`, 'delivered').then(() => accept(call, response, n))
  })
  expect(await explainMessage(app, { params: {}, query: {}, body: { id } }, {} as never)).toMatchObject({
    event_ids: expect.arrayContaining([`${first}:delivered`, `${second}:delivered`]) as unknown,
  })
  await platform.messages({ statuses: [statusPart(first, 'failed', { errors: [{ code: 131026 }] })] })
  await settled()
  expect(await stateOf(id)).toEqual({ status: 'sent', rank: 3, code: null, upstreamId: first })
  await platform.messages({ statuses: [statusPart(second, 'read')] })
  await settled()
  expect(await stateOf(id)).toEqual({ status: 'read', rank: 5, code: null, upstreamId: first })
})
