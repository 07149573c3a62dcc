import { until } from '@app/test/until.ts'
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { type TestMessaging, testMessaging } from '../testing/app.ts'
import { platformOf, statusPart } from '../testing/callbacks.ts'
import { serveDirectoryChanges } from '../testing/directory-changes.ts'

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
beforeEach(() => directory.asked.splice(0))

const settled = () => until(async () => expect(await app.sql`select 1 from callback_items`).toHaveLength(0))

const seconds = Math.floor(Date.now() / 1000) - 60
const at = new Date(seconds * 1000).toISOString()

test('wishes about marketing messages go to directory; others, and broken ones, do not', async () => {
  const wish = { wa_id: '15550123456', detail: 'x', category: 'marketing_messages', timestamp: seconds }
  await platform.numberChange('user_preferences', { user_preferences: [{ ...wish, category: 'other', value: 'stop' }] })
  await platform.numberChange('user_preferences', { user_preferences: 'nonsense' })
  await settled()
  expect(directory.asked).toEqual([])
  await platform.numberChange('user_preferences', {
    user_preferences: [
      { ...wish, value: 'stop' },
      { ...wish, value: 'perhaps' },
      { ...wish, value: 'stop', timestamp: 'soon' },
      null,
      { ...wish, wa_id: undefined, user_id: 'no user id', value: 'stop' },
      { wa_id: undefined, user_id: 'US.1', category: 'marketing_messages', value: 'resume', timestamp: `${seconds}` },
    ],
  })
  await settled()
  expect(directory.asked).toEqual([
    {
      subject: 'record-preferences',
      body: {
        preferences: [
          { wa_id: '15550123456', bsuid: null, value: 'stop', at },
          { wa_id: null, bsuid: 'US.1', value: 'resume', at },
        ],
      },
    },
  ])
})

test('more wishes than directory takes at a time go there in several questions', async () => {
  const wish = { detail: 'x', category: 'marketing_messages', value: 'stop', timestamp: seconds }
  const wishes = Array.from({ length: 1_001 }, (_, n) => ({ ...wish, wa_id: String(15550200000 + n) }))
  await platform.numberChange('user_preferences', { user_preferences: wishes })
  await until(async () => expect(await app.sql`select 1 from callback_items where attempts = 0`).toHaveLength(0))
  const told = directory.asked.flatMap(({ body }) => (body as { preferences: { wa_id: string }[] }).preferences)
  expect(told.map(({ wa_id: waId }) => waId).toSorted()).toEqual(wishes.map(({ wa_id: waId }) => waId))
})

test('a failure for the opt-out of its recipient is told to directory, once', async () => {
  const { id } = await app.send('offer')
  await until(async () => expect(await app.statusOf(id)).toBe('sent'))
  const [row] = await app.sql<{ upstreamId: string; contactId: string; recipient: string }[]>`
    select upstream_id, contact_id, recipient from messages where id = ${id}
  `
  const failed = statusPart(row?.upstreamId ?? '', 'failed', { errors: [{ code: 131050, title: 'no' }] })
  await platform.messages({ statuses: [failed, failed] }, { statuses: [failed] })
  await settled()
  const stops = (await app.events()).filter(({ subject }) => subject.endsWith('marketing-stopped'))
  expect(stops.map(({ payload }) => payload)).toEqual([
    {
      phone_number_id: expect.any(String),
      contact_id: row?.contactId,
      recipient: row?.recipient,
      at: expect.any(String),
    },
  ])
})

test('a user id of somebody who is not known yet waits, and is told when it is', async () => {
  const update = {
    wa_id: '15550123456',
    detail: 'x',
    user_id: { previous: 'US.1', current: 'US.2' },
    parent_user_id: { previous: 'US.ENT.1', current: 'US.ENT.2' },
    timestamp: seconds,
  }
  directory.strangers.add('US.1')
  await platform.numberChange('user_id_update', { user_id_update: [update] })
  await until(async () => expect(await app.sql`select 1 from callback_items where attempts > 0`).toHaveLength(1))
  directory.strangers.delete('US.1')
  await settled()
  expect(directory.asked.at(-1)).toEqual({
    subject: 'change-identity',
    body: {
      id: `US.1>US.2:${seconds * 1000}`,
      previous: { wa_id: '15550123456', bsuid: 'US.1' },
      current: { wa_id: '15550123456', bsuid: 'US.2', parent_bsuid: 'US.ENT.2' },
      at,
    },
  })
})

test('of several user ids one that is not known yet waits, though those behind it are', async () => {
  const update = (n: number) => ({ user_id: { previous: `US.1${n}`, current: `US.2${n}` }, timestamp: seconds })
  directory.strangers.add('US.11')
  await platform.numberChange('user_id_update', { user_id_update: [update(1), update(2)] })
  await until(async () => expect(await app.sql`select 1 from callback_items where attempts > 0`).toHaveLength(1))
  directory.strangers.delete('US.11')
  await settled()
  expect(directory.asked.slice(-2)).toMatchObject([
    { body: { current: { bsuid: 'US.21' } } },
    { body: { current: { bsuid: 'US.22' } } },
  ])
})

test('a user id that is none holds up none beside it', async () => {
  const update = { wa_id: '15550123456', user_id: { previous: 'US.3', current: 'US.4' }, timestamp: seconds }
  await platform.numberChange('user_id_update', {
    user_id_update: [{ ...update, user_id: { current: 'no user id' } }, null, update],
  })
  await settled()
  expect(directory.asked).toMatchObject([{ body: { current: { bsuid: 'US.4' } } }])
})

const system = (id: string, from: string, more: object) => ({
  messages: [{ from, id, timestamp: `${seconds}`, type: 'system', system: { body: 'changed', ...more } }],
})

test('a system message gives a contact its new number, makes a row and no event', async () => {
  const number = system('wamid.S1', '15550123456', { type: 'user_changed_number', wa_id: '15550199999' })
  await platform.messages(number, number)
  await settled()
  expect(directory.asked[0]).toEqual({
    subject: 'change-identity',
    body: {
      id: 'wamid.S1',
      previous: { wa_id: '15550123456', bsuid: null },
      current: { wa_id: '15550199999', bsuid: null, parent_bsuid: null },
      at,
    },
  })
  const rows = await app.sql`
    select type, unsupported, content, direction, created_at from messages where upstream_id = 'wamid.S1'
  `
  expect(rows).toEqual([
    { type: 'unsupported', unsupported: 'system', content: null, direction: 'inbound', createdAt: new Date(at) },
  ])
  expect((await app.events()).filter(({ id }) => id === 'wamid.S1')).toEqual([])
})

test('a system message gives whoever had the user id before the one that it names, with or without a sender', async () => {
  const changed = {
    type: 'user_changed_user_id',
    previous_user_id: 'US.7',
    user_id: 'US.8',
    parent_user_id: 'US.ENT.8',
  }
  const about = (id: string, more: object) => ({
    messages: [{ id, timestamp: `${seconds}`, type: 'system', system: { body: 'changed', ...changed }, ...more }],
  })
  const moved = { ...changed, type: 'user_changed_number', wa_id: '15550199997' }
  await platform.messages(about('wamid.U1', {}))
  await settled()
  await platform.messages(about('wamid.U2', { from: '15550123456', from_user_id: 'US.8', system: moved }))
  await settled()
  const before = { from: '15550123456', from_user_id: 'US.8', system: { ...moved, previous_user_id: undefined } }
  await platform.messages(about('wamid.U3', before))
  await settled()
  const current = { wa_id: '15550199997', bsuid: 'US.8', parent_bsuid: 'US.ENT.8' }
  expect(directory.asked.map(({ body }) => body)).toEqual([
    { id: 'wamid.U1', previous: { wa_id: null, bsuid: 'US.7' }, current: { ...current, wa_id: null }, at },
    { id: 'wamid.U2', previous: { wa_id: '15550123456', bsuid: 'US.7' }, current, at },
    { id: 'wamid.U3', previous: { wa_id: '15550123456', bsuid: null }, current, at },
  ])
})

test('a user id with a parent that is none is told all the same', async () => {
  const update = { user_id: { previous: 'US.5', current: 'US.6' }, parent_user_id: 'US.ENT.2', timestamp: seconds }
  await platform.numberChange('user_id_update', { user_id_update: [update] })
  await settled()
  expect(directory.asked).toMatchObject([{ body: { current: { bsuid: 'US.6', parent_bsuid: null } } }])
})

test('a system message with a parent that is no text gives a contact its new number all the same', async () => {
  const more = { type: 'user_changed_number', wa_id: '15550199998', parent_user_id: 7 }
  await platform.messages(system('wamid.S3', '15550123456', more))
  await settled()
  expect(directory.asked).toMatchObject([{ body: { current: { wa_id: '15550199998', parent_bsuid: null } } }])
})

test('a system message about somebody who is not known yet waits for what makes him known, such as his own message beside it', async () => {
  directory.strangers.add('15550100001')
  await platform.messages(system('wamid.S4', '15550100001', { type: 'user_changed_number', wa_id: '15550199996' }))
  await until(async () => expect(await app.sql`select 1 from callback_items where attempts > 0`).toHaveLength(1))
  directory.strangers.delete('15550100001')
  await settled()
  expect(await app.sql`select unsupported from messages where upstream_id = 'wamid.S4'`).toEqual([
    { unsupported: 'system' },
  ])
})

test('a system message about nobody whom we know waits for an hour, and makes nothing', async () => {
  directory.strangers.add('15550100000')
  await platform.messages(system('wamid.S2', '15550100000', { type: 'user_changed_number', wa_id: '15550199999' }))
  await until(async () => expect(await app.sql`select 1 from callback_items where attempts > 0`).toHaveLength(1))
  // After looks of an hour but one.
  await app.sql`update callback_items set attempts = 15`
  const look = async () => {
    await app.sql`update callback_lanes set due_at = now(), arrivals = arrivals + 1 where id like '%:wamid.S2'`
    app.callbacks.wake()
  }
  await look()
  await until(async () => expect(await app.sql`select 1 from callback_items where attempts = 16`).toHaveLength(1))
  await look()
  await settled()
  expect(await app.sql`select 1 from messages where upstream_id = 'wamid.S2'`).toEqual([])
})

test('the address book of the phone app is taken over, but what is no contact with a number, which is logged', async () => {
  const warn = vi.spyOn(app.log, 'warn')
  const entry = (phone: string, action: string, name = 'Ana') => ({
    type: 'contact',
    contact: { full_name: name, first_name: 'A', phone_number: phone },
    action,
    metadata: { timestamp: `${seconds}` },
  })
  const hidden = { ...entry('', 'add'), contact: { full_name: 'Ben', user_id: 'US.9', username: 'ben' } }
  await platform.numberChange('smb_app_state_sync', {
    state_sync: [
      entry('+1 555-012-3456', 'add'),
      entry('15550123457', 'remove'),
      entry('', 'add'),
      { type: 'label' },
      hidden,
    ],
  })
  await settled()
  expect(directory.asked).toEqual([
    {
      subject: 'import-contacts',
      body: {
        contacts: [
          { wa_id: '15550123456', name: 'Ana', action: 'add', at },
          { wa_id: '15550123457', name: 'Ana', action: 'remove', at },
        ],
      },
    },
  ])
  expect(warn.mock.calls).toMatchObject([[{ field: 'smb_app_state_sync', parts: 3 }, expect.any(String)]])
  warn.mockRestore()
})

test('an address book goes to directory in parts that it takes, by first names where there are no others', async () => {
  const state_sync = Array.from({ length: 1_001 }, (_, n) => ({
    type: 'contact',
    contact: { first_name: `A${n}`, phone_number: String(15550300000 + n) },
    action: 'add',
    metadata: { timestamp: `${seconds}` },
  }))
  await platform.numberChange('smb_app_state_sync', { state_sync })
  await until(async () => expect(await app.sql`select 1 from callback_items where attempts = 0`).toHaveLength(0))
  const told = directory.asked.flatMap(({ body }) => (body as { contacts: { name: string }[] }).contacts)
  // A small part may overtake a large one.
  expect(told.map(({ name }) => name).toSorted()).toEqual(
    state_sync.map(({ contact }) => contact.first_name).toSorted(),
  )
  expect(directory.asked.length).toBeGreaterThan(1)
})

test('a name of the address book that is too long is cut between two characters, and keeps no other out', async () => {
  const entry = (phone: string, name: string) => ({
    type: 'contact',
    contact: { full_name: name, phone_number: phone },
    action: 'add',
    metadata: { timestamp: `${seconds}` },
  })
  await platform.numberChange('smb_app_state_sync', {
    state_sync: [entry('15550123456', `${'x'.repeat(999)}😀`), entry('15550123457', 'Ana')],
  })
  await settled()
  expect(directory.asked).toMatchObject([
    { body: { contacts: [{ wa_id: '15550123456' }, { wa_id: '15550123457', name: 'Ana' }] } },
  ])
})
