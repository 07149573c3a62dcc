import { systemCaller } from '@app/shared/bus/ask.ts'
import { newId } from '@app/shared/values/ids.ts'
import { createTestDatabase, type TestDatabase } from '@app/test/database.ts'
import { newAccountState } from '@app/test/account-state.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { App } from '../app.ts'
import { storeAccount } from '../accounts/put-account.ts'
import { explainContact } from './explain-contact.ts'
import { explainConversation } from './explain-conversation.ts'

let database: TestDatabase
let app: App
beforeAll(async () => {
  database = await createTestDatabase('directory')
  app = { sql: database.sql } as App
  await storeAccount(app.sql, state)
})
afterAll(() => database.drop())

const state = newAccountState()
const { organization_id, phone_number_id } = state

async function historyOf(handler: typeof explainContact, id: string) {
  const answer = await handler(app, { params: {}, query: {}, body: { id } }, systemCaller())
  if ('whole' in answer) throw new Error('an explanation is answered by its handler')
  return answer.history
}

const put = (table: string, row: object) => app.sql`insert into ${app.sql(table)} ${app.sql(row as never)}`
const past = new Date('2026-01-02T03:04:05.000Z')
const times = { created_at: past, updated_at: past }
const hoursAgo = (hours: number) => new Date(Date.now() - hours * 3_600_000)

async function newContact(fields: object = {}) {
  const id = newId('ctc')
  await put('contacts', { organization_id, phone_number_id, id, name: 'Ana', ...times, ...fields })
  return id
}

async function newConversation(fields: object = {}, contact?: string) {
  const id = newId('cnv')
  const contact_id = contact ?? (await newContact())
  await put('conversations', { organization_id, phone_number_id, id, contact_id, ...times, ...fields })
  return id
}

const conversations: [string, object, string | RegExp][] = [
  ['open', { last_inbound_at: hoursAgo(1) }, /^is open; its window is open until 20.*Z$/],
  ['resolved', { status: 'resolved', last_inbound_at: hoursAgo(1) }, /^is resolved; its window is open until/],
  [
    'closed for texts',
    { last_inbound_at: hoursAgo(25) },
    /^is open; its window is closed since 20.*Z: templates alone are taken \(outside_24h_window\)$/,
  ],
  ['never written in', {}, 'is open; its customer has never written: templates alone are taken (outside_24h_window)'],
  [
    'merged',
    { merged_into: 'cnv_1', status: 'resolved', unread_there: 2 },
    'has ended, at 2026-01-02T03:04:05.000Z or before: its contact was merged, and it goes on in cnv_1',
  ],
]

test.each(conversations)('a conversation says how it stands: one that is %s', async (_state, fields, words) => {
  const history = await historyOf(explainConversation, await newConversation(fields))
  expect(history[0]).toMatchObject({ at: past.toISOString(), what: 'was begun', details: { organization_id } })
  expect(history.at(-1)?.what).toMatch(words)
})

test('a conversation tells who wrote when, what is unread, who has it, and what ended in it', async () => {
  const contact = await newContact({ deleted_at: past })
  const unread = { unread_count: 3, assigned_to: 'usr_1', last_inbound_at: past, last_message_at: past }
  const live = await newConversation(unread, contact)
  const ended = await newConversation({ merged_into: live, unread_there: 1 }, contact)
  const history = await historyOf(explainConversation, live)
  expect(history.map(({ what }) => what)).toEqual(
    expect.arrayContaining([
      'the customer wrote last',
      'its newest message, of either side',
      'its contact was deleted',
    ]),
  )
  expect(history.at(-1)?.details).toMatchObject({ unread_count: 3, assigned_to: 'usr_1', ended_in_it: [ended] })
  expect((await historyOf(explainConversation, ended)).at(-1)?.details).toMatchObject({ unread_when_it_ended: 1 })
})

test('where the organization leaves the window to the platform, that is said', async () => {
  await app.sql`update accounts set window_check = 'upstream'`
  expect((await historyOf(explainConversation, await newConversation())).at(-1)?.what).toBe(
    'is open; its customer has never written, and the platform decides whether it takes what is no template',
  )
  await app.sql`update accounts set window_check = 'strict'`
})

const stop = { marketing_preference: 'stop', marketing_preference_at: past }
const contacts: [string, object, string[], string][] = [
  ['new', {}, ['was made'], 'is there, and has no conversation yet'],
  [
    'that wants no marketing',
    stop,
    ['was made', 'wanted no more marketing messages'],
    'is there, and has no conversation yet, and gets no marketing messages (marketing_opted_out)',
  ],
  [
    'that wants it again',
    { ...stop, marketing_preference: 'resume' },
    ['was made', 'wanted marketing messages again'],
    'is there, and has no conversation yet',
  ],
  [
    'deleted',
    { deleted_at: past },
    ['was made', 'was deleted'],
    'is deleted: its conversations stay, nothing personal of it does',
  ],
  [
    'merged',
    { deleted_at: past, merged_into: 'ctc_1' },
    ['was made', 'was found to be the same person as ctc_1, and was merged into it'],
    'is gone: ctc_1 has its names and conversations',
  ],
]

test.each(contacts)('a contact says what became of it: one %s', async (_state, fields, before, words) => {
  const history = await historyOf(explainContact, await newContact(fields))
  expect(history.slice(0, -1)).toMatchObject(before.map((what) => ({ at: past.toISOString(), what })))
  expect(history.at(-1)).toMatchObject({ at: null, what: words })
})

test('a contact leads to its conversations, and shows neither its names nor what it is known by', async () => {
  const contact = await newContact({ phone_number: '+15550101234', email: 'ana@example.com' })
  await put('identities', {
    organization_id,
    phone_number_id,
    kind: 'phone',
    value: '+15550101234',
    contact_id: contact,
  })
  const other = { contact_id: await newContact(), kind: 'bsuid', value: 'US.1' }
  await put('identities', { organization_id, phone_number_id, ...other })
  const ended = await newConversation({ merged_into: 'cnv_1' }, contact)
  const live = await newConversation({}, contact)
  const history = await historyOf(explainContact, contact)
  expect(history.at(-1)).toMatchObject({
    what: 'is there',
    details: { conversation_id: live, ended_conversations: [ended], known_by: ['phone'] },
  })
  expect(JSON.stringify(history)).not.toMatch(/Ana|ana@|0101234/)
})

test('what is not there is not found', async () => {
  await expect(historyOf(explainContact, newId('ctc'))).rejects.toThrow('No such resource')
  await expect(historyOf(explainConversation, newId('cnv'))).rejects.toThrow('No such resource')
})
