import { until } from '@app/test/until.ts'
import { beforeAll, expect, test } from 'vitest'
import { accept, refuse, type TestMessaging } from '../testing/app.ts'
import { messagingThatSends } from '../testing/sending.ts'
import { sweepLetOutLanes } from './sweep-lanes.ts'

const sending = messagingThatSends()
const { eventually, eventsOf, passTime } = sending
let app: TestMessaging
beforeAll(() => void ({ app } = sending))

test('messages of a conversation keep their order through a retry', async () => {
  const to = '+15550100001'
  let refused = 0
  app.respondWith((call, response, n) => {
    if (call.text === 'first' && refused++ === 0) refuse(131056)(call, response, n)
    else accept(call, response, n)
  })
  const sends = [await app.send('first', { to }), await app.send('second', { to }), await app.send('third', { to })]
  await eventually(sends[2]?.id ?? '', 'sent')
  const calls = app.calls.filter((call) => call.to === to).map(({ text }) => text)
  expect(calls).toEqual(['first', 'first', 'second', 'third'])
})

test('with relaxed ordering a send that failed twice lets the later ones of its conversation pass, and goes out itself', async () => {
  await app.setSender({ settings: { ...app.settings, ordering: 'relaxed' } })
  app.respondWith((call, response, n) =>
    call.text === 'stubborn' ? refuse(131000, 500)(call, response, n) : accept(call, response, n),
  )
  const to = '+15550100026'
  const { id, conversationId: lane } = await app.send('stubborn', { to })
  const behind = await app.send('behind it', { to })
  const calls = (text: string) => app.calls.filter((call) => call.text === text)
  const waits = async (attempts: number) =>
    expect(
      await app.sql`select lane from sends where message_id = ${id} and attempts = ${attempts} and begun_at is null`,
    )
  await until(async () => (await waits(1)).toEqual([{ lane }]))
  expect(calls('behind it')).toEqual([])
  await passTime(id, lane)
  await eventually(behind.id, 'sent')
  const own = `${lane}:${id}`
  await until(async () => (await waits(2)).toEqual([{ lane: own }]))
  app.respondWith(accept)
  expect(await sweepLetOutLanes(app.sql)).toBe(0)
  await passTime(id, own)
  await eventually(id, 'sent')
  expect(calls('stubborn')).toHaveLength(3)
  // Its lane goes, that of the conversation stays.
  await until(async () => (await sweepLetOutLanes(app.sql)) === 1)
  expect(await app.sql`select id from send_lanes where id in (${lane}, ${own})`).toEqual([{ id: lane }])
  await app.setSender({ settings: app.settings })
})

test('a send that has failed twice already lets the later ones pass once relaxed ordering is chosen, and waits where it is then', async () => {
  app.respondWith((call, response, n) =>
    call.text === 'long stubborn' ? refuse(131000, 500)(call, response, n) : accept(call, response, n),
  )
  const to = '+15550100027'
  const { id, conversationId: lane } = await app.send('long stubborn', { to })
  const behind = await app.send('behind it', { to })
  const failed = (attempts: number, inLane: string) =>
    until(async () =>
      expect(
        await app.sql`select lane from sends where message_id = ${id} and attempts = ${attempts} and begun_at is null`,
      ).toEqual([{ lane: inLane }]),
    )
  await failed(1, lane)
  await passTime(id, lane)
  await failed(2, lane)
  await app.setSender({ settings: { ...app.settings, ordering: 'relaxed' } })
  await passTime(id, lane)
  await eventually(behind.id, 'sent')
  const own = `${lane}:${id}`
  await failed(3, own)
  await passTime(id, own)
  await failed(4, own)
  app.respondWith(accept)
  await passTime(id, own)
  await eventually(id, 'sent')
  await app.setSender({ settings: app.settings })
})

test('a send whose token nothing opens has surely not been sent: it is tried again, and goes out when the token opens', async () => {
  const to = '+15550100088'
  await app.setSender({ sealed_token: 'k0.AAAAAAAAAAAAAAAA.AAAAAAAAAAAAAAAAAAAAAAAA' })
  const { id, conversationId } = await app.send('sealed', { to })
  await until(async () => {
    const attempts = await app.sql`select outcome, detail from send_attempts where message_id = ${id}`
    expect(attempts).toEqual([{ outcome: 'unreachable', detail: 'The stored token of the number does not open.' }])
  })
  expect(await app.sql`select attempts from sends where message_id = ${id}`).toEqual([{ attempts: 1 }])
  await app.setSender({})
  await passTime(id, conversationId)
  await eventually(id, 'sent')
  expect(app.calls.filter((call) => call.to === to)).toHaveLength(1)
})

test.each([
  [
    'for our proof, which is wrong while the app’s secret is set anew,',
    { code: 100, message: 'Invalid appsecret_proof provided in the API argument' },
  ],
  ['with a code that nobody knows, as transient,', { code: 987_654, message: 'Wait.', is_transient: true }],
])('a send that is refused %s is tried again', async (_, error) => {
  app.respondWith((_call, response) => {
    response.writeHead(400, { 'content-type': 'application/json' }).end(JSON.stringify({ error }))
  })
  const { id, conversationId } = await app.send('passing', { to: '+15550100100' })
  await until(async () =>
    expect(
      await app.sql`select 1 from sends where message_id = ${id} and attempts = 1 and begun_at is null`,
    ).toHaveLength(1),
  )
  app.respondWith(accept)
  await passTime(id, conversationId)
  await eventually(id, 'sent')
})

test('an outcome that nobody knows is never sent again: it waits for a callback, then fails as delivery_unknown', async () => {
  const to = '+15550100003'
  app.respondWith((_call, response) => response.destroy())
  const { id, conversationId } = await app.send('lost', { to })
  const behind = await app.send('behind it', { to })
  await until(async () =>
    expect(await app.sql`select 1 from sends where message_id = ${id} and parked_until > now()`).toHaveLength(1),
  )
  expect(await app.statusOf(behind.id)).toBe('queued')
  app.respondWith(accept)
  await passTime(id, conversationId)
  await eventually(id, 'failed')
  await eventually(behind.id, 'sent')
  expect(app.calls.filter((call) => call.messageId === id)).toHaveLength(1)
  const [row] = await app.sql`select error, rank from messages where id = ${id}`
  expect(row).toMatchObject({ rank: 2, error: { code: 'delivery_unknown', provider_code: null } })
  expect(JSON.stringify((await eventsOf(id))[0]?.payload)).toContain('"code":-1')
})

test('an attempt that was found begun belongs to a dispatcher that died: it is not made again', async () => {
  const to = '+15550100004'
  const { conversationId } = await app.send('warm up', { to })
  await until(async () => expect(await app.sql`select 1 from sends where lane = ${conversationId}`).toHaveLength(0))
  await app.sql`update send_lanes set held_until = now() + interval '1 hour' where id = ${conversationId}`
  const { id } = await app.send('begun', { to })
  await app.sql`update sends set begun_at = now(), attempts = 1 where message_id = ${id}`
  await app.sql`update send_lanes set held_until = '-infinity', due_at = now() where id = ${conversationId}`
  app.dispatcher.wake()
  await until(async () =>
    expect(await app.sql`select 1 from sends where message_id = ${id} and parked_until > now()`).toHaveLength(1),
  )
  await passTime(id, conversationId)
  await eventually(id, 'failed')
  expect(app.calls.filter((call) => call.messageId === id)).toHaveLength(0)
  const attempts = await app.sql`select outcome, detail from send_attempts where message_id = ${id}`
  expect(attempts).toEqual([{ outcome: 'unknown', detail: 'the dispatcher died in the call' }])
})

test('an unknown outcome is sent again as often as any other attempt, and then fails as unknown', async () => {
  const to = '+15550180077'
  await app.setSender({ settings: { ...app.settings, unknown_outcome: 'resend' } })
  app.respondWith((_call, response) => response.destroy())
  const { id, conversationId } = await app.send('never answered', { to })
  const untilParked = (attempts: number) =>
    until(async () =>
      expect(await app.sql`select attempts from sends where message_id = ${id} and parked_until > now()`).toEqual([
        { attempts },
      ]),
    )
  await untilParked(1)
  await passTime(id, conversationId)
  await untilParked(2)
  await app.sql`update sends set attempts = 7 where message_id = ${id}`
  await passTime(id, conversationId)
  await eventually(id, 'failed')
  expect(app.calls.filter((call) => call.messageId === id)).toHaveLength(2)
  expect(await app.sql`select rank, error ->> 'code' as code from messages where id = ${id}`).toEqual([
    { rank: 2, code: 'delivery_unknown' },
  ])
  await app.setSender({})
})
