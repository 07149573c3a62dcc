import { newId } from '@app/shared/values/ids.ts'
import { untilSomebodyWaits } from '@app/test/lock-waits.ts'
import { until } from '@app/test/until.ts'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { oldMessagesSweep } from '../messages/delete-old-messages.ts'
import { type TestMessaging, testMessaging } from '../testing/app.ts'
import { inboundValue, metadata, platformOf, statusPart } from '../testing/callbacks.ts'
import { serveDirectoryChanges } from '../testing/directory-changes.ts'
import { adoptImported } from './adopt-imported.ts'

let app: TestMessaging
let platform: ReturnType<typeof platformOf>
let directory: Awaited<ReturnType<typeof serveDirectoryChanges>>
beforeAll(async () => {
  app = await testMessaging()
  platform = platformOf(app)
  directory = await serveDirectoryChanges(app)
})
afterAll(async () => {
  await directory.stop()
  await app.close()
})

const settled = () => until(async () => expect(await app.sql`select 1 from callback_items`).toHaveLength(0))

const own = metadata.display_phone_number
const customer = '15550123456'
const seconds = Math.floor(Date.now() / 1000) - 3_600
const iso = (n = 0) => new Date((seconds + n) * 1000).toISOString()

const echo = (id: string, more: object = {}) => ({
  from: own,
  to: customer,
  id,
  timestamp: `${seconds}`,
  type: 'text',
  text: { body: 'from the phone' },
  ...more,
})
const echoed = (...message_echoes: object[]) => platform.numberChange('smb_message_echoes', { message_echoes })
const rowOf = async (upstreamId: string) =>
  (
    await app.sql`
    select id, direction, type, recipient, content, status, source, created_at, revoked_at, played_at from messages
    where upstream_id = ${upstreamId}
  `
  )[0]
const eventsOf = async (providerId: string) =>
  (await app.events()).filter(({ payload }) => JSON.stringify(payload).includes(providerId))

test('what is sent from the phone app is a row and one message.sent of source app, however often it is told', async () => {
  await echoed(echo('wamid.A1'), echo('wamid.A1'), { ...echo('wamid.A1x'), to: undefined })
  await echoed(echo('wamid.A1'))
  await settled()
  const row = await rowOf('wamid.A1')
  expect(row).toMatchObject({
    direction: 'outbound',
    type: 'text',
    recipient: `+${customer}`,
    content: 'from the phone',
    status: 'sent',
    source: 'app',
    createdAt: new Date(iso()),
  })
  const [sent, ...more] = await eventsOf('wamid.A1"')
  expect(more).toEqual([])
  expect(sent).toMatchObject({
    id: `${row?.['id']}:sent`,
    payload: {
      type: 'message.sent',
      data: { timestamp: iso(), message: { provider_id: 'wamid.A1', source: 'app', to: `+${customer}` } },
    },
  })
  expect(await rowOf('wamid.A1x')).toBeUndefined()
})

test('what was sent from the phone app, and went for its age, is not made or told anew when it comes again', async () => {
  await app.setSender({ retention_days: 1 })
  const old = echo('wamid.GONE', { timestamp: String(seconds - 2 * 24 * 60 * 60) })
  await echoed(old)
  await settled()
  expect(await eventsOf('wamid.GONE')).toHaveLength(1)
  expect(await oldMessagesSweep()(app.sql)).toBe(1)
  await echoed(old)
  await settled()
  expect(await rowOf('wamid.GONE')).toBeUndefined()
  expect(await eventsOf('wamid.GONE')).toHaveLength(1)
  await app.setSender({ retention_days: null })
})

test('directory is not asked again for whom a message of the phone app went to that was recorded, kept or not', async () => {
  const known = echo('wamid.K1')
  const gone = echo('wamid.K2', { timestamp: String(seconds - 2 * 24 * 60 * 60) })
  await app.setSender({ retention_days: 1 })
  await echoed(known, gone)
  await settled()
  expect(await oldMessagesSweep()(app.sql)).toBe(1)
  app.opened.splice(0)
  const eva = '15550199999'
  await echoed(known, gone, echo('wamid.K3', { to: eva }))
  await settled()
  expect(app.opened).toEqual([`+${eva}`])
  expect(await rowOf('wamid.K3')).toMatchObject({ recipient: `+${eva}` })
  await app.setSender({ retention_days: null })
})

test('a field that is null is as one that is absent, in what is sent from the phone app and in old messages', async () => {
  await echoed(echo('wamid.N1', { context: null, to_user_id: null }), echo('wamid.N2', { context: { id: null } }))
  await history({
    id: customer,
    messages: [old('wamid.N3', customer, 1, 'READ', { context: null, history_context: null })],
  })
  await settled()
  for (const id of ['wamid.N1', 'wamid.N2', 'wamid.N3']) expect(await rowOf(id), id).toMatchObject({ type: 'text' })
})

test('statuses of an echo move it, also when they come before it', async () => {
  await platform.messages({ statuses: [statusPart('wamid.A2', 'read')] })
  await until(async () => expect(await app.sql`select 1 from callback_items where attempts > 0`).toHaveLength(1))
  await echoed(echo('wamid.A2'))
  await settled()
  expect(await rowOf('wamid.A2')).toMatchObject({ status: 'read' })
})

test('what the phone app takes back or edits is revised, without an event', async () => {
  await echoed(
    echo('wamid.A3.e', {
      type: 'edit',
      edit: { original_message_id: 'wamid.A3', message: { type: 'text', text: { body: 'new' } } },
    }),
    echo('wamid.A3'),
  )
  await settled()
  expect(await rowOf('wamid.A3')).toMatchObject({ content: 'new' })
  await echoed(echo('wamid.A3.r', { type: 'revoke', revoke: { original_message_id: 'wamid.A3' } }))
  await settled()
  expect(await rowOf('wamid.A3')).toMatchObject({ content: 'from the phone', revokedAt: new Date(iso()) })
  expect((await eventsOf('wamid.A3')).map(({ payload }) => payload['type'])).toEqual(['message.sent'])
})

const imageOf = (id: string) => {
  app.files.sent.set(id, { bytes: Buffer.from(`picture ${id}`), mimeType: 'image/jpeg' })
  return { type: 'image', image: { id, mime_type: 'image/jpeg', caption: 'Look' } }
}
const fileOf = async (upstreamId: string) =>
  (
    await app.sql<{ fileKey: string | null }[]>`
      select f.file_key from messages m join media f on f.organization_id = m.organization_id and f.id = m.media_id
      where m.upstream_id = ${upstreamId}
    `
  )[0]?.fileKey

test('a picture from the phone app is told when it is stored, once', async () => {
  await echoed(echo('wamid.A4', imageOf('80001')), echo('wamid.A4', imageOf('80001')))
  await until(async () => expect(await eventsOf('wamid.A4')).toHaveLength(1))
  const [event] = await eventsOf('wamid.A4')
  const url = expect.stringMatching(/^https:\/\/chat\.example\.com\/media\//)
  expect(event?.payload).toMatchObject({
    type: 'message.sent',
    data: {
      message: {
        type: 'image',
        body: 'Look',
        source: 'app',
        media_url: url,
        media_status: 'ready',
        image: { link: url, caption: 'Look' },
      },
    },
  })
  await echoed(echo('wamid.A4', imageOf('80001')))
  await settled()
  expect(await eventsOf('wamid.A4')).toHaveLength(1)
})

const old = (id: string, from: string, n: number, status: string, more: object = {}) => ({
  from,
  id,
  timestamp: `${seconds + n}`,
  type: 'text',
  text: { body: id },
  history_context: { status },
  ...more,
})
const history = (...threads: object[]) =>
  platform.numberChange('history', { history: [{ metadata: { phase: 0, chunk_order: 1, progress: 50 }, threads }] })

test('old messages are rows with their old times and states, in their threads, without events, once', async () => {
  directory.asked.splice(0)
  const before = (await app.events()).length
  const thread = {
    id: customer,
    messages: [
      old('wamid.H1', customer, 1, 'READ'),
      old('wamid.H2', own, 2, 'DELIVERED'),
      old('wamid.H3', own, 3, 'ERROR'),
      old('wamid.H4', own, 4, 'PENDING'),
      { nonsense: true },
    ],
  }
  await history(thread, { id: 'x' })
  await history(thread)
  await settled()
  expect(await rowOf('wamid.H1')).toMatchObject({ direction: 'inbound', status: 'read', createdAt: new Date(iso(1)) })
  expect(await rowOf('wamid.H2')).toMatchObject({
    direction: 'outbound',
    status: 'delivered',
    source: 'app',
    recipient: `+${customer}`,
    createdAt: new Date(iso(2)),
  })
  expect(await rowOf('wamid.H3')).toMatchObject({ status: 'failed' })
  expect(await rowOf('wamid.H4')).toMatchObject({ status: 'sent' })
  expect((await app.events()).length).toBe(before)
  expect(await app.sql`select 1 from messages where upstream_id like 'wamid.H_'`).toHaveLength(4)
  expect(directory.asked[0]).toEqual({
    subject: 'import-threads',
    body: { threads: [{ wa_id: customer, bsuid: null, last_message_at: iso(4) }] },
  })
})

test('directory is asked of old conversations only for messages that were not recorded', async () => {
  const eva = '15550199999'
  const ana = { id: customer, messages: [old('wamid.K4', customer, 1, 'READ')] }
  await history(ana, { id: eva, messages: [old('wamid.K5', eva, 3, 'READ')] })
  await settled()
  directory.asked.splice(0)
  await history(ana, { id: eva, messages: [old('wamid.K5', eva, 3, 'READ'), old('wamid.K6', eva, 2, 'READ')] })
  await settled()
  expect(directory.asked).toEqual([
    { subject: 'import-threads', body: { threads: [{ wa_id: eva, bsuid: null, last_message_at: iso(2) }] } },
  ])
  expect(await rowOf('wamid.K6')).toMatchObject({ direction: 'inbound' })
})

test('a message that the history brings before its own callback is told by that, once, and counts as unread', async () => {
  await history({ id: customer, messages: [old('wamid.L1', customer, 1, 'READ')] })
  await settled()
  const before = await rowOf('wamid.L1')
  expect(await eventsOf('wamid.L1')).toEqual([])
  for (let n = 0; n < 2; n++) {
    await platform.messages(inboundValue('wamid.L1', 'hello'), inboundValue('wamid.L1', 'hello'))
    await settled()
    expect(await rowOf('wamid.L1')).toEqual({ ...before, source: 'api', status: 'delivered' })
    expect(await eventsOf('wamid.L1')).toMatchObject([
      { id: 'wamid.L1', payload: { svc: { message_id: before?.['id'] } } },
    ])
  }
})

test.each([
  ['with its file', () => imageOf('83001')],
  ['before its file', () => ({ type: 'media_placeholder' })],
])('a message that the history brings %s is told with one, and has one', async (name, inHistory) => {
  const id = `wamid.L2 ${name}`
  await history({ id: customer, messages: [old(id, customer, 1, 'READ', inHistory())] })
  await until(async () => expect(await app.sql`select 1 from media_copies`).toHaveLength(0))
  await platform.messages(inboundValue(id, '', imageOf('83002')))
  await until(async () => expect(await eventsOf(id)).toHaveLength(1))
  const url = expect.stringMatching(/^https:\/\/chat\.example\.com\/media\//)
  expect((await eventsOf(id))[0]).toMatchObject({ payload: { svc: { media_url: url } } })
  expect(await rowOf(id)).toMatchObject({ type: 'image', content: 'Look' })
  expect(await fileOf(id)).toEqual(expect.any(String))
  expect(
    await app.sql`select 1 from media m where not exists (select from messages where media_id = m.id)`,
  ).toHaveLength(0)
})

test('an old message of a number that the platform writes in another way is outbound', async () => {
  await platform.numberChange('history', {
    metadata: { ...metadata, display_phone_number: '5511988887777' },
    history: [{ threads: [{ id: customer, messages: [old('wamid.BR', '551188887777', 1, 'DELIVERED')] }] }],
  })
  await settled()
  expect(await rowOf('wamid.BR')).toMatchObject({ direction: 'outbound', recipient: `+${customer}` })
})

test('an old message of our number is outbound, though its callback does not show that number', async () => {
  await platform.numberChange('history', {
    metadata: { ...metadata, display_phone_number: undefined },
    history: [{ threads: [{ id: customer, messages: [old('wamid.UNSHOWN', own, 1, 'DELIVERED')] }] }],
  })
  await settled()
  expect(await rowOf('wamid.UNSHOWN')).toMatchObject({ direction: 'outbound', recipient: `+${customer}` })
})

test('old messages of somebody who hides the number are theirs by the user id, which others are known by as well', async () => {
  directory.asked.splice(0)
  const hidden = { from: undefined, from_user_id: 'US.9' }
  await history(
    {
      context: { user_id: 'US.9', username: 'ana.p' },
      messages: [old('wamid.B1', '', 1, 'READ', hidden), old('wamid.B2', own, 2, 'READ', { to_user_id: 'US.9' })],
    },
    { id: customer, context: { wa_id: customer, user_id: 'US.10' }, messages: [old('wamid.B3', own, 3, 'READ')] },
    { context: { wa_id: customer, user_id: 'no user id' }, messages: [old('wamid.B4', customer, 4, 'READ')] },
  )
  await settled()
  const told = directory.asked.flatMap(({ body }) => (body as { threads: object[] }).threads)
  expect(new Set(told)).toEqual(
    new Set([
      { wa_id: null, bsuid: 'US.9', last_message_at: iso(2) },
      { wa_id: customer, bsuid: 'US.10', last_message_at: iso(3) },
      { wa_id: customer, bsuid: null, last_message_at: iso(4) },
    ]),
  )
  expect(await rowOf('wamid.B1')).toMatchObject({ direction: 'inbound', recipient: null })
  expect(await rowOf('wamid.B2')).toMatchObject({ direction: 'outbound', recipient: 'US.9' })
  expect(await rowOf('wamid.B3')).toMatchObject({ direction: 'outbound', recipient: `+${customer}` })
  expect(await rowOf('wamid.B4')).toMatchObject({ direction: 'inbound' })
})

test.each([
  ['before', ['media', 'thread']],
  ['after', ['thread', 'media']],
])('an old message whose file is told %s its thread has its type, caption and file', async (name, order) => {
  const id = `wamid.HM.${name}`
  const media = { from: customer, id, timestamp: `${seconds}`, ...imageOf(`8100${order.indexOf('media')}`) }
  for (const step of order) {
    if (step === 'media') await platform.numberChange('history', { messages: [media] })
    else await history({ id: customer, messages: [old(id, customer, 1, 'READ', { type: 'media_placeholder' })] })
    if (name === 'after') await settled()
  }
  await settled()
  expect(await rowOf(id)).toMatchObject({ type: 'image', content: 'Look' })
  await until(async () => expect(await fileOf(id)).toEqual(expect.any(String)))
  expect(await eventsOf(id)).toEqual([])
})

test('the file of an old message that the business wrote itself is told in a list of its own', async () => {
  const told = { from: own, to: customer, id: 'wamid.HE', timestamp: `${seconds}`, ...imageOf('81010') }
  await history({ id: customer, messages: [old('wamid.HE', own, 1, 'READ', { type: 'media_placeholder' })] })
  await platform.numberChange('history', { history: null, messages: null, message_echoes: [told] })
  await settled()
  expect(await rowOf('wamid.HE')).toMatchObject({
    type: 'image',
    content: 'Look',
    direction: 'outbound',
    status: 'read',
  })
  await until(async () => expect(await fileOf('wamid.HE')).toEqual(expect.any(String)))
  expect(await eventsOf('wamid.HE')).toEqual([])
})

test('old messages get their files in the order in which receipts take them, however they are found', async () => {
  const ids = ['wamid.HO1', 'wamid.HO2', 'wamid.HO3']
  await history({
    id: customer,
    messages: ids.map((id) => old(id, customer, 1, 'READ', { type: 'media_placeholder' })),
  })
  await settled()
  const rows = await app.sql<{ id: string; upstreamId: string }[]>`
    select id, upstream_id from messages where upstream_id = any(${ids}) order by id desc
  `
  const files = rows.map(({ upstreamId: id }, n) => ({
    from: customer,
    id,
    timestamp: `${seconds}`,
    ...imageOf(`8200${n}`),
  }))
  const free = await app.sql.begin(async (tx) => {
    await tx`select from messages where id = ${rows.at(-1)?.id ?? null} for update`
    await platform.numberChange('history', { messages: files })
    await untilSomebodyWaits(app.sql)
    return tx`select from messages where upstream_id = any(${ids}) for update skip locked`
  })
  expect([rows.length, free.length]).toEqual([3, 3])
  await settled()
  for (const id of ids) expect(await rowOf(id)).toMatchObject({ type: 'image' })
})

test('old messages whose own callbacks come are taken in the order in which receipts take them', async () => {
  const ids = ['wamid.LO1', 'wamid.LO2', 'wamid.LO3']
  // The order of their ids is that of their times, and not that of the platform’s ids.
  await history({ id: customer, messages: ids.map((id, n) => old(id, customer, -n, 'READ')) })
  await settled()
  const told = ids.map((upstream_id) => ({
    organization_id: app.number.organizationId,
    id: newId('msg'),
    upstream_id,
    type: 'text',
    content: 'hello',
    unsupported: null,
    body: {},
    media_id: null,
  }))
  const { adopting, free } = await app.sql.begin(async (tx) => {
    await tx`select from messages where upstream_id = 'wamid.LO3' for update`
    const adopted = app.sql.begin((other) => adoptImported(other, told))
    await untilSomebodyWaits(app.sql)
    return {
      adopting: adopted,
      free: await tx`select upstream_id from messages where upstream_id = any(${ids}) for update skip locked`,
    }
  })
  expect([free.length, (await adopting).size]).toEqual([3, 3])
})

test('what has another shape in old messages holds up nothing beside it, and is told of', async () => {
  const warn = vi.spyOn(app.log, 'warn')
  const error = vi.spyOn(app.log, 'error')
  await history({
    id: customer,
    messages: [
      old('wamid.O1', customer, 1, 'READ', { type: 'media_placeholder' }),
      old('wamid.O2', customer, 1, 'READ'),
    ],
  })
  await settled()
  await history({ id: 'nobody', messages: [old('wamid.O3', customer, 1, 'READ')] })
  await platform.numberChange('history', {
    messages: [null, { from: customer, id: 'wamid.O1', timestamp: `${seconds}`, ...imageOf('82001') }],
  })
  await platform.numberChange('history', { history: 'nonsense' })
  await platform.numberChange('history', { something: 'new' })
  await settled()
  expect(await rowOf('wamid.O1')).toMatchObject({ type: 'image' })
  expect(await rowOf('wamid.O2')).toMatchObject({ type: 'text' })
  const told = [warn, error].map(({ mock }) => mock.calls.map(([line]) => line as object))
  expect(told).toMatchObject([
    [
      { field: 'history', parts: 1 },
      { field: 'history', parts: 1 },
    ],
    [{ field: 'history' }, { field: 'history' }],
  ])
})

test('a type that is called like what every object has is unsupported, in what the phone app sent and in old messages', async () => {
  await echoed(echo('wamid.C1', { type: 'constructor' }))
  await history({
    id: customer,
    messages: [old('wamid.C2', customer, 1, 'READ', { type: 'toString' }), old('wamid.C3', customer, 2, 'READ')],
  })
  await settled()
  expect(await rowOf('wamid.C1')).toMatchObject({ type: 'unsupported' })
  expect(await rowOf('wamid.C2')).toMatchObject({ type: 'unsupported' })
  expect(await rowOf('wamid.C3')).toMatchObject({ type: 'text' })
})

test('the first time that a voice note was played stays, in every order', async () => {
  await echoed(echo('wamid.V1', { type: 'audio', audio: { id: '1', voice: true } }))
  await settled()
  for (const n of [30, 20, 40]) {
    await platform.messages({ statuses: [statusPart('wamid.V1', 'played', { timestamp: `${seconds + n}` })] })
    await settled()
  }
  expect(await rowOf('wamid.V1')).toMatchObject({ playedAt: new Date(iso(20)) })
  expect((await app.events()).filter(({ id }) => id === 'wamid.V1:played')).toHaveLength(1)
})
