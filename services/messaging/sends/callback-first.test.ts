import type { ServerResponse } from 'node:http'
import { until } from '@app/test/until.ts'
import { beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { accept, refuse, type TestMessaging } from '../testing/app.ts'
import { platformOf, statusPart } from '../testing/callbacks.ts'
import { messagingThatSends } from '../testing/sending.ts'

const sending = messagingThatSends()
// Far below the minute that an unknown outcome waits.
const { eventually } = sending
let app: TestMessaging
let platform: ReturnType<typeof platformOf>
beforeAll(() => {
  ;({ app } = sending)
  platform = platformOf(app)
})

const choose = (unknown_outcome: 'fail' | 'resend') => app.setSender({ settings: { ...app.settings, unknown_outcome } })
const openSends = (id: string) => app.sql`select attempts, begun_at, parked_until from sends where message_id = ${id}`
const callsOf = (id: string) => app.calls.filter(({ messageId }) => messageId === id)
const events = async (id: string) => (await sending.eventsOf(id)).map((event) => event.id)

/** A callback that carries our id, worked through. */
async function callBack(id: string, upstreamId: string, word = 'sent') {
  await platform.messages({ statuses: [statusPart(upstreamId, word, { biz_opaque_callback_data: id })] })
  await until(async () => {
    const [row] = await app.sql`select upstream_id from messages where id = ${id}`
    expect(row).toEqual({ upstreamId })
  })
}

/** The platform takes the text, tells it by a callback, and only then does its answer end as given. */
const callBackBefore = (text: string, upstreamId: string, end: (response: ServerResponse) => void, word?: string) =>
  app.respondWith((call, response, n) => {
    if (call.text !== text) return accept(call, response, n)
    void callBack(call.messageId, upstreamId, word).then(() => end(response))
  })

const isOver = async (id: string) => {
  expect(await openSends(id)).toEqual([])
  expect(callsOf(id)).toHaveLength(1)
  expect(await events(id)).toEqual([`${id}:sent`])
}
/** Of the sends that ended, those whose outcome stayed unknown. */
const unknowns = async () =>
  /^svc_sends_ended_total\{.*code="delivery_unknown".*\} (\d+)$/m.exec(await app.probes.metrics.metrics())?.[1]

test.each(['fail', 'resend'] as const)(
  'a callback that comes before the connection drops ends the send: nothing waits, and with %s nothing is sent again',
  async (setting) => {
    await choose(setting)
    const [to, text] = [`+1555031000${setting.length}`, `dropped, ${setting}`]
    callBackBefore(text, `wamid.DROPPED.${setting}`, (response) => response.destroy())
    const { id } = await app.send(text, { to })
    const behind = await app.send('behind it', { to })
    await eventually(behind.id, 'sent')
    expect(await app.statusOf(id)).toBe('sent')
    await isOver(id)
    expect(await unknowns()).toBe('0')
    const attempts = await app.sql`select outcome from send_attempts where message_id = ${id}`
    expect(attempts).toEqual([{ outcome: 'unknown' }])
  },
)

test.each(['fail', 'resend'] as const)(
  'a callback for the call of a dispatcher that died ends the send, with %s',
  async (setting) => {
    await choose(setting)
    const to = `+1555031001${setting.length}`
    const { id: first, conversationId } = await app.send('warm up', { to })
    await eventually(first, 'sent')
    await until(async () =>
      expect(await app.sql`select 1 from send_lanes where id = ${conversationId} and held_until < now()`).toHaveLength(
        1,
      ),
    )
    await app.sql`update send_lanes set held_until = now() + interval '1 hour' where id = ${conversationId}`
    const { id } = await app.send('begun', { to })
    const behind = await app.send('behind it', { to })
    await app.sql`update sends set begun_at = now(), attempts = 1 where message_id = ${id}`
    await callBack(id, `wamid.ORPHAN.${setting}`, 'delivered')
    await app.sql`update send_lanes set held_until = '-infinity', due_at = now() where id = ${conversationId}`
    app.dispatcher.wake()
    await eventually(behind.id, 'sent')
    expect(await app.statusOf(id)).toBe('delivered')
    expect(await openSends(id)).toEqual([])
    expect(callsOf(id)).toEqual([])
    expect(await events(id)).toEqual([`${id}:sent`])
    expect(await app.sql`select 1 from send_attempts where message_id = ${id}`).toEqual([])
    expect(await unknowns()).toBe('0')
  },
)

test('a callback that comes while a send waits for its next attempt ends it, and the conversation goes on', async () => {
  app.respondWith(refuse(131000, 500))
  const to = '+15550310020'
  const { id } = await app.send('refused for now', { to })
  await until(async () => expect(await app.sql`select 1 from send_attempts where message_id = ${id}`).toHaveLength(1))
  app.respondWith(accept)
  const behind = await app.send('behind it', { to })
  await callBack(id, 'wamid.BETWEEN')
  // The next attempt would begin after 4 s at the earliest.
  await vi.waitFor(async () => expect(await app.statusOf(behind.id)).toBe('sent'), { timeout: 3_000, interval: 20 })
  await isOver(id)
})

test('a callback ends the wait of its own send alone: another one of the number waits on', async () => {
  // A minute until the next try.
  app.respondWith(refuse(131057, 500))
  const [named, other] = [
    await app.send('told of', { to: '+15550310023' }),
    await app.send('not told of', { to: '+15550310024' }),
  ]
  const waiting = () => app.sql`
    select id from send_lanes where id in (${named.conversationId}, ${other.conversationId})
      and due_at > now() + interval '20 seconds' and held_until < now()
  `
  await until(async () => expect(await waiting()).toHaveLength(2))
  app.respondWith(accept)
  await callBack(named.id, 'wamid.ALONE')
  await until(() => isOver(named.id))
  expect(await waiting()).toEqual([{ id: other.conversationId }])
  expect(callsOf(other.id)).toHaveLength(1)
  await sending.passTime(other.id, other.conversationId)
  await eventually(other.id, 'sent')
})

test('a callback ends a send that waits beside its conversation, too', async () => {
  await app.setSender({ settings: { ...app.settings, ordering: 'relaxed' } })
  onTestFinished(() => app.setSender({}))
  app.respondWith(refuse(131000, 500))
  const { id, conversationId } = await app.send('waits beside', { to: '+15550310025' })
  const attempted = (times: number) =>
    until(async () => expect(await app.sql`select 1 from send_attempts where message_id = ${id}`).toHaveLength(times))
  await attempted(1)
  await app.sql`update send_lanes set due_at = now() where id = ${conversationId}`
  app.dispatcher.wake()
  await attempted(2)
  expect(await app.sql`select lane from sends where message_id = ${id}`).toEqual([{ lane: `${conversationId}:${id}` }])
  await callBack(id, 'wamid.BESIDE')
  // The next attempt would begin after many seconds.
  await vi.waitFor(async () => expect(await openSends(id)).toEqual([]), { timeout: 3_000, interval: 20 })
  expect(callsOf(id)).toHaveLength(2)
})

test('a later attempt that the platform refuses for good does not fail the message that it has of the first', async () => {
  await choose('resend')
  const to = '+15550310030'
  app.respondWith((_call, response) => response.destroy())
  const { id, conversationId } = await app.send('twice', { to })
  await until(async () => expect(await openSends(id)).toMatchObject([{ begunAt: null, parkedUntil: expect.any(Date) }]))
  callBackBefore('twice', 'wamid.TWICE', (response) => refuse(131026)({} as never, response, 0))
  await app.sql`update sends set parked_until = now() - interval '1 s' where message_id = ${id}`
  await app.sql`update send_lanes set due_at = now() where id = ${conversationId}`
  app.dispatcher.wake()
  await until(async () => expect(await openSends(id)).toEqual([]))
  expect(callsOf(id)).toHaveLength(2)
  expect(await app.statusOf(id)).toBe('sent')
  expect(await events(id)).toEqual([`${id}:sent`])
})

test('message.sent is told once, though the first that names the message is that it was played', async () => {
  const [upstreamId, text] = ['wamid.PLAYED', 'played at once']
  callBackBefore(
    text,
    upstreamId,
    (response) => {
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify({ messaging_product: 'whatsapp', contacts: [], messages: [{ id: upstreamId }] }))
    },
    'played',
  )
  const { id } = await app.send(text, { to: '+15550310040' })
  await eventually(id, 'sent')
  await until(() => isOver(id))
})

test('a message of unknown outcome is at the platform, though all that a callback tells is that it was played', async () => {
  callBackBefore('played, no answer', 'wamid.PLAYEDONLY', (response) => response.destroy(), 'played')
  const { id } = await app.send('played, no answer', { to: '+15550310050' })
  await until(async () => expect(await openSends(id)).toEqual([]))
  expect(await app.statusOf(id)).toBe('sent')
})
