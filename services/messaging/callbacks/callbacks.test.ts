import { randomBytes } from 'node:crypto'
import { untilSomebodyWaits } from '@app/test/lock-waits.ts'
import { until } from '@app/test/until.ts'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { accept, organizationId, phoneNumberId, refuse, type TestMessaging, testMessaging } from '../testing/app.ts'
import { epochNow, inboundValue, metadata, platformOf, statusPart } from '../testing/callbacks.ts'

let app: TestMessaging
let platform: ReturnType<typeof platformOf>
beforeAll(async () => {
  app = await testMessaging()
  platform = platformOf(app)
})
afterAll(() => app.close())
beforeEach(() => app.respondWith(accept))

const callback = (...values: object[]) => platform.messages(...values)

async function sent(text: string) {
  const { id } = await app.send(text)
  await until(async () => expect(await app.statusOf(id)).toBe('sent'))
  const [row] = await app.sql<{ upstreamId: string }[]>`select upstream_id from messages where id = ${id}`
  return { id, upstreamId: row?.upstreamId ?? '' }
}

const told = async (upstreamId: string) =>
  (await app.events())
    .filter(({ id }) => id.startsWith(`${upstreamId}:`))
    .map(({ id }) => id.slice(upstreamId.length + 1))

const orders = [
  ['sent', 'delivered', 'read'],
  ['read', 'delivered', 'sent'],
  ['delivered', 'sent', 'read', 'delivered', 'sent'],
  ['read', 'read', 'sent', 'delivered'],
]

test.each(orders)(
  'statuses in any order, with duplicates, end the same and are told once each: %s %s %s',
  async (...words) => {
    const { id, upstreamId } = await sent(`order ${words.join()}`)
    for (const word of words) await callback({ statuses: [statusPart(upstreamId, word)] })
    await until(async () => expect((await told(upstreamId)).toSorted()).toEqual(['delivered', 'read', 'sent']))
    expect(await app.statusOf(id)).toBe('read')
  },
)

test('all statuses in one callback end the same', async () => {
  const { id, upstreamId } = await sent('at once')
  await callback({ statuses: ['read', 'sent', 'delivered', 'sent'].map((word) => statusPart(upstreamId, word)) })
  await until(async () => expect((await told(upstreamId)).toSorted()).toEqual(['delivered', 'read', 'sent']))
  expect(await app.statusOf(id)).toBe('read')
})

test('a failed callback fails the message with the code of the platform', async () => {
  const { id, upstreamId } = await sent('will fail')
  await callback({
    statuses: [statusPart(upstreamId, 'failed', { errors: [{ code: 131047, title: 'Re-engagement message' }] })],
  })
  await until(async () => expect(await app.statusOf(id)).toBe('failed'))
  const [row] = await app.sql`select error from messages where id = ${id}`
  expect(row?.['error']).toMatchObject({ code: 'outside_24h_window', provider_code: 131047 })
})

test('a callback that carries our id resolves an unknown outcome: sent, once told, and what waited behind it goes on', async () => {
  app.respondWith((_call, response) => response.destroy())
  const { id } = await app.send('dropped')
  await until(async () =>
    expect(await app.sql`select 1 from sends where message_id = ${id} and parked_until > now()`).toHaveLength(1),
  )
  app.respondWith(accept)
  const behind = await app.send('behind')
  await callback({ statuses: [statusPart('wamid.LATE', 'delivered', { biz_opaque_callback_data: id })] })
  await until(async () => expect(await app.statusOf(id)).toBe('delivered'))
  await until(async () => expect(await app.statusOf(behind.id)).toBe('sent'))
  const events = (await app.events()).filter((event) => event.id === `${id}:sent`)
  expect(events).toHaveLength(1)
  expect(events[0]?.payload).toMatchObject({ data: { message: { provider_id: 'wamid.LATE' } } })
  expect(app.calls.filter((call) => call.messageId === id)).toHaveLength(1)
})

test('a late callback lifts a message that was refused when it was sent again: the first attempt had arrived', async () => {
  const to = '+15550100019'
  await app.setSender({ settings: { ...app.settings, unknown_outcome: 'resend' } })
  app.respondWith((_call, response) => response.destroy())
  const { id, conversationId } = await app.send('arrived', { to })
  await until(async () =>
    expect(await app.sql`select 1 from sends where message_id = ${id} and parked_until > now()`).toHaveLength(1),
  )
  app.respondWith(refuse(131026))
  await app.sql`update sends set parked_until = now() - interval '1 s' where message_id = ${id}`
  await app.sql`update send_lanes set due_at = now() where id = ${conversationId}`
  app.dispatcher.wake()
  await until(async () => expect(await app.statusOf(id)).toBe('failed'))
  await callback({ statuses: [statusPart('wamid.FIRST', 'delivered', { biz_opaque_callback_data: id })] })
  await until(async () => expect(await app.statusOf(id)).toBe('delivered'))
  await app.setSender({})
})

test('a late callback lifts a message that had failed as unknown', async () => {
  app.respondWith((_call, response) => response.destroy())
  const { id, conversationId } = await app.send('given up', { to: '+15550100009' })
  await until(async () =>
    expect(await app.sql`select 1 from sends where message_id = ${id} and parked_until > now()`).toHaveLength(1),
  )
  await app.sql`update sends set parked_until = now() - interval '1 s' where message_id = ${id}`
  await app.sql`update send_lanes set due_at = now() where id = ${conversationId}`
  app.dispatcher.wake()
  await until(async () => expect(await app.statusOf(id)).toBe('failed'))
  await callback({ statuses: [statusPart('wamid.LIFT', 'sent', { biz_opaque_callback_data: id })] })
  await until(async () => expect(await app.statusOf(id)).toBe('sent'))
  const [row] = await app.sql`select error from messages where id = ${id}`
  expect(row?.['error']).toBeNull()
})

test('a status for an id that nobody knows yet waits apart and is applied when the message is known', async () => {
  app.respondWith((call, response, n) => {
    setTimeout(() => accept(call, response, n), 1_500)
  })
  const { id } = await app.send('slow answer', { to: '+15550100010' })
  await until(async () => expect(app.calls.some((call) => call.messageId === id)).toBe(true))
  const upstreamId = `wamid.OUT${app.calls.length}`
  await callback({ statuses: [statusPart(upstreamId, 'delivered')] }, inboundValue('wamid.IN0', 'not held up'))
  await until(async () => expect((await app.events()).some((event) => event.id === 'wamid.IN0')).toBe(true))
  await until(async () => expect(await app.statusOf(id)).toBe('delivered'))
})

test('a status whose message is never known is looked at again and again, for a day, and then given up', async () => {
  await callback({ statuses: [statusPart('wamid.NEVER', 'delivered')] })
  const lane = `${organizationId}:wamid.NEVER`
  const looked = (attempts: number | null) =>
    until(async () =>
      expect(await app.sql`select attempts from callback_items where lane = ${lane}`).toEqual(
        attempts === null ? [] : [{ attempts }],
      ),
    )
  const look = async () => {
    await until(async () =>
      expect(await app.sql`select 1 from callback_lanes where id = ${lane} and held_until < now()`).toHaveLength(1),
    )
    await app.sql`update callback_lanes set due_at = now() where id = ${lane}`
    app.callbacks.wake()
  }
  await looked(1)
  await look()
  await looked(2)
  // Five times in the first minutes, then every five minutes.
  await app.sql`update callback_items set attempts = 292 where lane = ${lane}`
  await look()
  await looked(293)
  await look()
  await looked(null)
})

test('what is set apart beside a part that has waited long does not wait as long, though that one is just looked at', async () => {
  const { sql } = app
  const { id } = await sent('soon')
  await callback({ statuses: ['wamid.SOON', 'wamid.NOBODY'].map((upstreamId) => statusPart(upstreamId, 'sent')) })
  const laneOf = (upstreamId: string) => `${app.number.organizationId}:${upstreamId}`
  const lane = laneOf('wamid.NOBODY')
  const attemptsOf = async () =>
    (await sql<{ attempts: number }[]>`select attempts from callback_items where lane = ${lane} order by seq`).map(
      ({ attempts }) => attempts,
    )
  const lookAt = async (one: string) => {
    await sql`update callback_lanes set due_at = now() where id = ${one}`
    app.callbacks.wake()
    await until(async () =>
      expect(await sql`select from callback_lanes where id = ${one} and held_until > now()`).toHaveLength(1),
    )
  }
  await until(async () => expect(await attemptsOf()).toEqual([1]))
  await sql`update messages set upstream_id = 'wamid.SOON' where id = ${id}`
  await sql.begin(async (tx) => {
    // Whoever looks at another status waits behind that of this message.
    await tx`select from messages where id = ${id} for update`
    await lookAt(laneOf('wamid.SOON'))
    await untilSomebodyWaits(sql)
    await sql`update callback_items set attempts = 10 where lane = ${lane}`
    await lookAt(lane)
    const revoke = { from: '15550100002', id: 'wamid.NOBODY', timestamp: epochNow(), type: 'revoke' }
    await callback({ messages: [{ ...revoke, revoke: { original_message_id: 'wamid.NEVER' } }] })
    await until(async () => expect(await attemptsOf()).toEqual([10, 1]))
  })
  await until(async () => expect(await attemptsOf()).toEqual([12, 2]))
  const rests = await sql`select due_at > now() as rests from callback_lanes where id = ${lane}`
  expect(rests).toEqual([{ rests: true }])
  await sql`delete from callback_items where lane = ${lane}`
})

test('an inbound message makes one row and one event, however often its callback comes', async () => {
  const body = inboundValue('wamid.IN1', 'hi there')
  await Promise.all([callback(body), callback(body), callback(body)])
  await callback(body)
  await until(async () => expect(await app.sql`select 1 from callback_items`).toHaveLength(0))
  const rows = await app.sql`select type, content, direction, status from messages where upstream_id = 'wamid.IN1'`
  expect(rows).toEqual([{ type: 'text', content: 'hi there', direction: 'inbound', status: 'delivered' }])
  const events = (await app.events()).filter((event) => event.id === 'wamid.IN1')
  expect(events).toHaveLength(1)
  expect(events[0]?.payload).toMatchObject({
    object: 'chat_business_account',
    entry: [
      {
        changes: [
          {
            field: 'messages',
            value: {
              messaging_product: 'chat',
              contacts: [{ profile: { name: 'Ana' }, chat_id: '15550123456' }],
              messages: [{ from: '15550123456', id: 'wamid.IN1', type: 'text', text: { body: 'hi there' } }],
            },
          },
        ],
      },
    ],
    svc: { phone_number_id: phoneNumberId, contact: { phone_number: '+15550123456' } },
  })
})

test('one callback with many entries, changes, messages and statuses makes as many events; a bad part holds up none', async () => {
  const { upstreamId } = await sent('many')
  const value = (n: number) => ({
    contacts: [{ profile: { name: 'Ana' }, wa_id: '15550123456' }],
    messages: [1, 2, 3].map((m) => ({
      from: '15550123456',
      id: `wamid.MANY${n}.${m}`,
      timestamp: epochNow(),
      type: 'text',
      text: { body: 'x' },
    })),
    statuses: n === 0 ? [statusPart(upstreamId, 'delivered'), { id: 7, nonsense: true }] : [],
  })
  const entry = (n: number) => ({
    id: '102290129340398',
    changes: [
      { field: 'messages', value: { messaging_product: 'whatsapp', metadata, ...value(n) } },
      { field: 'weather', value: {} },
      { field: 'messages', value: { metadata: { phone_number_id: '999999999' }, messages: [{ id: 'x' }] } },
      { field: 'messages', value: 'nonsense' },
    ],
  })
  await platform.post({ object: 'whatsapp_business_account', entry: [entry(0), entry(1)] })
  await until(async () => expect((await app.events()).filter(({ id }) => id.startsWith('wamid.MANY'))).toHaveLength(6))
  await until(async () => expect(await told(upstreamId)).toEqual(['delivered']))
  await until(async () => expect(await app.sql`select 1 from callback_items`).toHaveLength(0))
  const unhandled = await app.sql`select field, reason, count from unhandled_changes order by field, reason`
  expect(unhandled).toEqual([
    { field: 'messages', reason: 'shape', count: '2' },
    { field: 'messages', reason: 'unknown_number', count: '2' },
    { field: 'weather', reason: 'unknown_field', count: '2' },
  ])
})

test('what is no callback of the platform is kept with its fault', async () => {
  await platform.post('{"object":"page"')
  await until(async () => {
    const [row] = await app.sql`select body, fault from callbacks where fault is not null`
    expect(Buffer.from(row?.['body'] as Uint8Array).toString()).toBe('{"object":"page"')
  })
})

test('text that Postgres cannot hold is mended, not refused', async () => {
  await callback(inboundValue('wamid.NUL', 'a\u0000b\ud800c'))
  await until(async () => expect(await app.sql`select 1 from messages where upstream_id = 'wamid.NUL'`).toHaveLength(1))
  const [row] = await app.sql`select content from messages where upstream_id = 'wamid.NUL'`
  expect(row?.['content']).toBe('ab\ufffdc')
})

test('a field that is null is as one that is absent', async () => {
  await callback({
    contacts: [{ profile: { name: 'Ana', username: null }, wa_id: null, user_id: 'US.134912', parent_user_id: null }],
    messages: [
      {
        from: null,
        from_user_id: 'US.134912',
        context: null,
        id: 'wamid.NULL',
        timestamp: epochNow(),
        type: 'text',
        text: { body: 'hi' },
      },
    ],
  })
  await until(async () => expect((await app.events()).some(({ id }) => id === 'wamid.NULL')).toBe(true))
  const rows = await app.sql`select content from messages where upstream_id = 'wamid.NULL'`
  expect(rows).toEqual([{ content: 'hi' }])
})

test.each([
  ['a user id of another form', { user_id: 'no user id' }, {}],
  ['a user id of another form in the message', {}, { from_user_id: '' }],
  ['a name of thousands of characters', { profile: { name: 'x'.repeat(3_000) } }, {}],
  ['a name that is no text', { profile: { name: 7, username: 'ana' } }, {}],
])('%s keeps no message out that has a number', async (what, contact, more) => {
  const id = `wamid.ODD.${what.length}`
  const value = inboundValue(id, 'hi', more)
  await callback({ ...value, contacts: [{ ...value.contacts[0], ...contact }] })
  await until(async () => expect((await app.events()).some((event) => event.id === id)).toBe(true))
})

test.each(['', '+1 555', 15550123456])(
  'a number of another form keeps no message out that has a user id: %j',
  async (from) => {
    const id = `wamid.FROM.${from}`
    const contacts = [{ profile: { name: 'Ana' }, wa_id: from, user_id: 'US.134913' }]
    await callback({ ...inboundValue(id, 'hi', { from, from_user_id: 'US.134913' }), contacts })
    await until(async () => expect((await app.events()).some((event) => event.id === id)).toBe(true))
  },
)

test('who names a user id beside the message alone has written it', async () => {
  const contacts = [{ profile: { name: 'Ana' }, user_id: 'US.134914' }]
  await callback({ ...inboundValue('wamid.BYCONTACT', 'hi', { from: undefined }), contacts })
  await until(async () => expect((await app.events()).some(({ id }) => id === 'wamid.BYCONTACT')).toBe(true))
})

test('a part whose id no index can hold stops no other', async () => {
  const id = randomBytes(3_000).toString('base64')
  await callback(inboundValue(id, 'odd'), { statuses: [statusPart(id, 'sent')] }, inboundValue('wamid.BESIDE', 'fine'))
  await until(async () => expect((await app.events()).some((event) => event.id === 'wamid.BESIDE')).toBe(true))
  await callback(inboundValue('wamid.BEHIND', 'fine, too'))
  await until(async () => expect((await app.events()).some((event) => event.id === 'wamid.BEHIND')).toBe(true))
  await until(async () => expect(await app.sql`select 1 from callback_items`).toHaveLength(0))
})

test('messages over which directory stumbles hold up none behind them, and are recorded when it does no more', async () => {
  const from = '15550666001'
  app.stumblingBlocks.add(from)
  const ids = Array.from({ length: 70 }, (_, n) => `wamid.STUMBLE${n}`)
  const contacts = [{ profile: { name: 'Ana' }, wa_id: from }]
  const messages = ids.flatMap((id) => inboundValue(id, 'hi', { from }).messages)
  await callback({ contacts, messages })
  await callback(inboundValue('wamid.PASSES', 'fine'))
  await until(async () => expect((await app.events()).some(({ id }) => id === 'wamid.PASSES')).toBe(true))
  app.stumblingBlocks.clear()
  await until(async () =>
    expect((await app.events()).filter(({ id }) => id.startsWith('wamid.STUMBLE'))).toHaveLength(ids.length),
  )
})

/** How many parts of a kind ended in each way so far. */
async function counted(kind: string) {
  const { values } = await app.meters.items.get()
  const of = (outcome: string) =>
    values.find(({ labels }) => labels.kind === kind && labels.outcome === outcome)?.value ?? 0
  return { failed: of('failed'), unfit: of('unfit') }
}

/** More than an event may hold, in a part that the platform could send. */
const oversized = 'x'.repeat(950 * 1024)

test('a message that is too large for an event is set aside by itself: those beside it are recorded at the first try', async () => {
  const large = inboundValue('wamid.LARGE', oversized).messages
  const small = Array.from({ length: 8 }, (_, n) => inboundValue(`wamid.SMALL${n}`, 'hi').messages).flat()
  const contacts = [{ profile: { name: 'Ana' }, wa_id: '15550123456' }]
  const before = await counted('message')
  await callback({ contacts, messages: [...small.slice(4), ...large, ...small.slice(0, 4)] })
  await until(async () =>
    expect((await app.events()).filter(({ id }) => id.startsWith('wamid.SMALL'))).toHaveLength(small.length),
  )
  await until(async () => expect(await app.sql`select 1 from callback_items`).toHaveLength(0))
  expect(await app.sql`select 1 from messages where upstream_id = 'wamid.LARGE'`).toHaveLength(0)
  expect(await counted('message')).toEqual({ ...before, unfit: before.unfit + 1 })
})

test('a status that is too large for an event is set aside by itself: those beside it are applied at the first try', async () => {
  const [one, two] = [await sent('beside a large one'), await sent('with a large one')]
  const before = await counted('status')
  await callback({
    statuses: [
      statusPart(two.upstreamId, 'failed', { errors: [{ code: 131026, message: oversized }] }),
      statusPart(one.upstreamId, 'delivered'),
    ],
  })
  await until(async () => expect(await app.sql`select 1 from callback_items`).toHaveLength(0))
  expect(await told(one.upstreamId)).toEqual(['delivered'])
  expect(await counted('status')).toEqual({ ...before, unfit: before.unfit + 1 })
})

test('a status with a field that is null is one without the field', async () => {
  const { id, upstreamId } = await sent('null beside it')
  const error = { code: 131026, title: 'Undeliverable', message: null, error_data: null }
  await callback({
    statuses: [
      statusPart(upstreamId, 'delivered', { biz_opaque_callback_data: null, errors: null }),
      statusPart(upstreamId, 'failed', { errors: [error] }),
    ],
  })
  await until(async () => expect(await told(upstreamId)).toHaveLength(2))
  const [row] = await app.sql`select error from messages where id = ${id}`
  expect(row?.['error']).toMatchObject({ provider_code: 131026, message: 'Undeliverable' })
})

test.each([
  ['a code that is a text', { errors: [{ code: '131026', title: 'Undeliverable' }] }, 131026],
  ['details that are a text', { errors: [{ code: 131026, error_data: 'Not on the platform' }] }, 131026],
  ['an error without a code', { errors: [{ title: 'Undeliverable' }] }, null],
  ['errors that are no list', { errors: { code: 131026 } }, null],
  ['a time that is a number', { errors: [{ code: 131026 }], timestamp: 1_750_000_000 }, 131026],
  ['data of ours that is no text', { errors: [{ code: 131026 }], biz_opaque_callback_data: 7 }, 131026],
])('a failure with %s is one all the same', async (what, more, code) => {
  const { id, upstreamId } = await sent(`fails with ${what}`)
  await callback({ statuses: [statusPart(upstreamId, 'failed', more)] })
  await until(async () => expect(await app.statusOf(id)).toBe('failed'))
  const [row] = await app.sql`select error from messages where id = ${id}`
  expect(row?.['error']).toMatchObject({ provider_code: code })
})

test.each([1_750_000_000, '1750000000000', 1_750_000_000_000])(
  'a message whose time is a number, or in milliseconds, is recorded as of that time: %j',
  async (timestamp) => {
    const id = `wamid.TIME.${typeof timestamp}.${timestamp}`
    await callback(inboundValue(id, 'hi', { timestamp }))
    await until(async () => expect(await app.sql`select 1 from callback_items`).toHaveLength(0))
    const rows = await app.sql`select created_at from messages where upstream_id = ${id}`
    expect(rows).toEqual([{ createdAt: new Date(1_750_000_000_000) }])
  },
)

test('a message from nobody is set aside at the first try', async () => {
  const before = await counted('message')
  const message = inboundValue('wamid.NOBODY', 'hi', { from: 'nobody' }).messages
  await callback({ messages: message })
  await until(async () => expect(await app.sql`select 1 from callback_items where attempts = 0`).toHaveLength(0))
  expect(await counted('message')).toEqual({ ...before, unfit: before.unfit + 1 })
  expect(await app.sql`select 1 from callback_items`).toHaveLength(0)
})

test('a sticker is a row of type unsupported with its own word', async () => {
  await callback(inboundValue('wamid.STICKER', '', { type: 'sticker', sticker: { id: '1' } }))
  await until(async () => expect(await app.sql`select 1 from callback_items`).toHaveLength(0))
  const rows = await app.sql`select upstream_id, type, unsupported from messages where upstream_id = 'wamid.STICKER'`
  expect(rows).toEqual([{ upstreamId: 'wamid.STICKER', type: 'unsupported', unsupported: 'sticker' }])
})

test.each(['constructor', '__proto__', 'toString'])(
  'a message of a type that is called like what every object has is a row of type unsupported: %s',
  async (type) => {
    const id = `wamid.NAMED.${type}`
    await callback(inboundValue(id, '', { type }))
    await until(async () => expect(await app.sql`select 1 from callback_items`).toHaveLength(0))
    const rows = await app.sql`select type, unsupported, body from messages where upstream_id = ${id}`
    expect(rows).toEqual([{ type: 'unsupported', unsupported: type, body: {} }])
  },
)

/** Waits for the event of a message, and looks at the message in it. */
async function expectTold(id: string, message: object) {
  const event = await until(async () => {
    const found = (await app.events()).find((one) => one.id === id)
    expect(found).toBeDefined()
    return found
  })
  expect(event?.payload).toMatchObject({ entry: [{ changes: [{ value: { messages: [message] } }] }] })
}

test.each([
  ['absent', {}],
  ['empty', { emoji: '' }],
  ['null', { emoji: null }],
])('a reaction that was taken back is told with an empty emoji: %s', async (how, emoji) => {
  const id = `wamid.REACTION.${how}`
  await callback(inboundValue(id, '', { type: 'reaction', reaction: { message_id: 'wamid.IN1', ...emoji } }))
  await expectTold(id, { type: 'reaction', reaction: { message_id: 'wamid.IN1', emoji: '' } })
})

test.each([
  ['absent', undefined],
  ['null', null],
  ['without a type', {}],
])('a message that the platform does not hand on is told with its kind: %s', async (how, unsupported) => {
  const id = `wamid.UNSUPPORTED.${how}`
  const errors = [{ code: 131051, title: 'Unsupported message type' }]
  await callback(inboundValue(id, '', { type: 'unsupported', text: undefined, errors, unsupported }))
  await expectTold(id, { type: 'unsupported', unsupported: { type: 'unknown' }, errors })
})

test.each([1_750_000_001, '1750000001999', 1_750_000_001_999])(
  'a message whose time is a number, or in milliseconds, is told with epoch seconds as text: %j',
  async (timestamp) => {
    const id = `wamid.SECONDS.${typeof timestamp}.${timestamp}`
    await callback(inboundValue(id, 'hi', { timestamp }))
    await expectTold(id, { timestamp: '1750000001' })
  },
)
