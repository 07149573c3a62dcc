import { untilSomebodyWaits } from '@app/test/lock-waits.ts'
import { until } from '@app/test/until.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type TestMessaging, testMessaging } from '../testing/app.ts'
import { inboundValue, metadata, platformOf } from '../testing/callbacks.ts'

let app: TestMessaging
let platform: ReturnType<typeof platformOf>
beforeAll(async () => {
  app = await testMessaging()
  platform = platformOf(app)
})
afterAll(() => app.close())

const settled = () => until(async () => expect(await app.sql`select 1 from callback_items`).toHaveLength(0))

const start = Math.floor(Date.now() / 1000) - 600
const from = '15550123456'
const inbound = (id: string, body: string) => ({ ...inboundValue(id, body) })
const revoke = (id: string, original: string) => ({
  messages: [{ from, id, timestamp: `${start + 60}`, type: 'revoke', revoke: { original_message_id: original } }],
})
const edit = (id: string, original: string, body: string, second: number) => ({
  messages: [
    {
      from,
      id,
      timestamp: `${start + second}`,
      type: 'edit',
      edit: { original_message_id: original, message: { type: 'text', text: { body } } },
    },
  ],
})

const contentOf = async (upstreamId: string) =>
  (await app.sql<{ content: string }[]>`select content from messages where upstream_id = ${upstreamId}`)[0]?.content

const told = async (type: string, upstreamId: string) =>
  (await app.events()).filter(
    ({ payload }) =>
      payload['type'] === type && (payload['data'] as { provider_id: string }).provider_id === upstreamId,
  )

interface Edited {
  new_content: string
  original_content: string
  edit_history: { content: string }[]
}

const iso = (second: number) => new Date((start + second) * 1000).toISOString()

test('what is taken back or changed is that message alone', async () => {
  await platform.messages(inbound('wamid.B1', 'one'), inbound('wamid.B2', 'two'), inbound('wamid.B3', 'three'))
  await settled()
  await platform.messages(revoke('wamid.B1.r', 'wamid.B1'), edit('wamid.B2.e', 'wamid.B2', 'second', 20))
  await settled()
  const rows = await app.sql`
    select content, revoked_at is not null as is_revoked, edits is not null as is_edited from messages
    where upstream_id in ('wamid.B1', 'wamid.B2', 'wamid.B3') order by upstream_id
  `
  expect(rows).toEqual([
    { content: 'one', isRevoked: true, isEdited: false },
    { content: 'second', isRevoked: false, isEdited: true },
    { content: 'three', isRevoked: false, isEdited: false },
  ])
})

test('a message that is taken back stays readable, and that is told once', async () => {
  await platform.messages(inbound('wamid.R1', 'secret'))
  await settled()
  await platform.messages(revoke('wamid.R1.r', 'wamid.R1'), revoke('wamid.R1.r', 'wamid.R1'))
  await platform.messages(revoke('wamid.R1.r', 'wamid.R1'))
  await settled()
  expect(await contentOf('wamid.R1')).toBe('secret')
  const [event, ...more] = await told('message.revoked', 'wamid.R1')
  expect(more).toEqual([])
  expect(event?.payload).toEqual({
    id: expect.stringMatching(/^evt_/),
    type: 'message.revoked',
    created_at: expect.any(String),
    data: {
      message_id: expect.stringMatching(/^msg_/),
      provider_id: 'wamid.R1',
      conversation_id: expect.stringMatching(/^cnv_/),
      contact_id: expect.stringMatching(/^ctc_/),
      contact_phone_number: `+${from}`,
      phone_number_id: metadata.phone_number_id,
      display_phone_number: '+15550001111',
      revoked_at: iso(60),
    },
  })
  expect(await app.sql`select 1 from messages where upstream_id = 'wamid.R1.r'`).toEqual([])
})

test('edits in any order, told again, end at the newest; the first version is never overwritten', async () => {
  await platform.messages(inbound('wamid.E1', 'one'))
  await settled()
  await platform.messages(edit('wamid.E1.c', 'wamid.E1', 'three', 30))
  await settled()
  await platform.messages(edit('wamid.E1.b', 'wamid.E1', 'two', 20), edit('wamid.E1.c', 'wamid.E1', 'three', 30))
  await settled()
  expect(await contentOf('wamid.E1')).toBe('three')
  const events = await told('message.edited', 'wamid.E1')
  expect(events.map(({ payload }) => payload['data'])).toEqual([
    expect.objectContaining({
      new_content: 'three',
      original_content: 'one',
      edited_at: iso(30),
      edit_history: [{ content: 'three', edited_at: iso(30) }],
    }),
    expect.objectContaining({
      new_content: 'three',
      original_content: 'one',
      edited_at: iso(30),
      edit_history: [
        { content: 'two', edited_at: iso(20) },
        { content: 'three', edited_at: iso(30) },
      ],
    }),
  ])
})

test('a long message is edited as often as its customer likes: the event leaves out the first edits when it has no room for all', async () => {
  const long = (letter: string) => letter.repeat(65_536)
  await platform.messages(inbound('wamid.E9', long('а')))
  await settled()
  const letters = ['б', 'в', 'г', 'д', 'е', 'ж', 'з']
  for (const [n, letter] of letters.entries()) {
    await platform.messages(edit(`wamid.E9.${n}`, 'wamid.E9', long(letter), 20 + n))
    await settled()
  }
  expect(await contentOf('wamid.E9')).toBe(long('з'))
  const events = (await told('message.edited', 'wamid.E9')).map(({ payload }) => payload['data'] as Edited)
  expect(events.map(({ new_content: text }) => text[0])).toEqual(letters)
  expect(events.map(({ original_content: text }) => text)).toEqual(letters.map(() => long('а')))
  const histories = events.map(({ edit_history: history }) => history.map(({ content }) => content[0]).join(''))
  expect(histories).toEqual(['б', 'бв', 'бвг', 'бвгд', 'вгде', 'гдеж', 'дежз'])
})

test('an edit that another instance is just recording stays in the history of the next', async () => {
  await platform.messages(inbound('wamid.E2', 'one'))
  await settled()
  const edits = JSON.stringify([{ id: 'wamid.E2.b', content: 'two', edited_at: iso(20) }])
  await app.sql.begin(async (tx) => {
    await tx`
      update messages set content = 'two', original_content = 'one', edits = ${edits}::text::jsonb
      where upstream_id = 'wamid.E2'
    `
    await platform.messages(edit('wamid.E2.c', 'wamid.E2', 'three', 30))
    await untilSomebodyWaits(app.sql)
  })
  await settled()
  const [event] = await told('message.edited', 'wamid.E2')
  expect(event?.payload['data']).toMatchObject({
    original_content: 'one',
    edit_history: [
      { content: 'two', edited_at: iso(20) },
      { content: 'three', edited_at: iso(30) },
    ],
  })
})

test.each([
  ['edit, revoke', ['edit', 'revoke']],
  ['revoke, edit', ['revoke', 'edit']],
])('of a message that was edited and taken back the first version is read: %s', async (name, order) => {
  const id = `wamid.ER.${name}`
  await platform.messages(inbound(id, 'one'))
  await settled()
  for (const step of order) {
    await platform.messages(step === 'edit' ? edit(`${id}.e`, id, 'two', 20) : revoke(`${id}.r`, id))
    await settled()
  }
  expect(await contentOf(id)).toBe('one')
})

test('a revision that comes before its message waits for it, and nothing waits behind it', async () => {
  await platform.messages(revoke('wamid.L1.r', 'wamid.L1'), edit('wamid.L1.e', 'wamid.L1', 'two', 20))
  await platform.messages(inbound('wamid.L2', 'not held up'))
  await until(async () => expect(await contentOf('wamid.L2')).toBe('not held up'))
  await platform.messages(inbound('wamid.L1', 'one'))
  await settled()
  expect(await contentOf('wamid.L1')).toBe('one')
  expect(await told('message.revoked', 'wamid.L1')).toHaveLength(1)
  expect(await told('message.edited', 'wamid.L1')).toHaveLength(1)
})

test('a customer cannot take back what we sent', async () => {
  const { id } = await app.send('ours')
  await until(async () => expect(await app.statusOf(id)).toBe('sent'))
  const [row] = await app.sql<{ upstreamId: string }[]>`select upstream_id from messages where id = ${id}`
  await platform.messages(revoke('wamid.O1.r', row?.upstreamId ?? ''))
  await until(async () => expect(await app.sql`select 1 from callback_items where attempts > 0`).toHaveLength(1))
  expect(await app.sql`select 1 from messages where revoked_at is not null and id = ${id}`).toEqual([])
  await app.sql`delete from callback_items`
})
