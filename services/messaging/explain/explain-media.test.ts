import { systemCaller } from '@app/shared/bus/ask.ts'
import { newId } from '@app/shared/values/ids.ts'
import { newAccountState } from '@app/test/account-state.ts'
import { createTestDatabase, type TestDatabase } from '@app/test/database.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { App } from '../app.ts'
import { insertMedia, type MediaRow } from '../media/media.ts'
import { storeSender } from '../senders/put-sender.ts'
import { explainMedia } from './explain-media.ts'
import { explainOrganizationSends } from './explain-organization-sends.ts'

let database: TestDatabase
let app: App
beforeAll(async () => {
  database = await createTestDatabase('messaging')
  app = { sql: database.sql } as App
  await store(state)
})
afterAll(() => database.drop())

const state = newAccountState()
const { organization_id, phone_number_id } = state
const sealKeys = { current: 'k1', byId: new Map() }
const store = (account: typeof state) => app.sql.begin((tx) => storeSender(tx, sealKeys, account))

async function historyOf(handler: typeof explainMedia | typeof explainOrganizationSends, id: string) {
  const answer = await handler(app, { params: {}, query: {}, body: { id } }, systemCaller())
  if ('whole' in answer) throw new Error('an explanation is answered by its handler')
  return answer.history
}

const put = (table: string, row: object) => app.sql`insert into ${app.sql(table)} ${app.sql(row as never)}`
const past = new Date('2026-01-02T03:04:05.000Z')
const soon = new Date(Date.now() + 600_000)

async function newFile(fields: Partial<MediaRow> = {}) {
  const id = newId('med')
  const row = { organizationId: organization_id, id, phoneNumberId: phone_number_id, source: 'upload' as const }
  const file = {
    fileKey: `3f/${id}`,
    mimeType: 'image/png',
    size: 48_213,
    sha256: 'ab'.repeat(32),
    filename: 'ana.png',
  }
  await app.sql.begin((tx) => insertMedia(tx, [{ ...row, ...file, ...fields }]))
  return id
}

async function carry(media: string) {
  const id = newId('msg')
  await put('messages', {
    organization_id,
    phone_number_id,
    id,
    conversation_id: newId('cnv'),
    contact_id: newId('ctc'),
    direction: 'outbound',
    type: 'image',
    body: {},
    parties: {},
    status: 'queued',
    rank: 0,
    request_id: '',
    created_at: past,
    media_id: media,
  })
  return id
}

test('a file tells what it is, until when it may be sent, and that nobody uses it', async () => {
  const id = await newFile()
  const [made, now, ...more] = await historyOf(explainMedia, id)
  expect(made).toMatchObject({
    what: 'was uploaded',
    details: { organization_id, phone_number_id, mime_type: 'image/png', size: 48_213, sha256: 'ab'.repeat(32) },
  })
  expect(now?.what).toMatch(
    /^is stored, and can be sent until 20.*Z; no message carries it, and it is deleted after 20.*Z$/,
  )
  expect(more).toEqual([])
  expect(JSON.stringify([made, now])).not.toMatch(/ana|3f\//)
  await expect(historyOf(explainMedia, newId('med'))).rejects.toThrow('No such resource')
})

test('a file names the messages that carry it, with the last of which it goes', async () => {
  const id = await newFile({ source: 'link' })
  const [first, second] = [await carry(id), await carry(id)]
  await app.sql`update media set expires_at = ${past}, sweep_at = null where id = ${id}`
  const history = await historyOf(explainMedia, id)
  expect(history[0]?.what).toBe('was fetched from a link, for a send')
  expect(history.at(-1)).toMatchObject({
    what: 'is stored, and can be sent no more; 2 messages carry it, and it goes with the last of these',
    details: { messages: [second, first] },
  })
})

test('a file of a customer that is not copied yet says so', async () => {
  const id = await newFile({ source: 'inbound', fileKey: null, size: null, sha256: null })
  await put('media_copies', {
    organization_id,
    phone_number_id,
    media_id: id,
    lane: organization_id,
    upstream_media_id: '1',
    event_due_at: past,
  })
  const message = await carry(id)
  const history = await historyOf(explainMedia, id)
  expect(history.map(({ what }) => what)).toEqual([
    'came with a message of a customer',
    'its file is still to be copied from the platform: try 1',
    'is not stored; 1 message carries it, and it goes with the last of these',
  ])
  expect(history.at(-1)?.details).toEqual({ messages: [message], expires_at: null })
})

test.each<[string, object, RegExp]>([
  ['has', { upstream_id: '77', expires_at: soon }, /^the platform has it until 20.*Z$/],
  ['has no more', { upstream_id: '77', expires_at: past }, /^the platform had it, and has it no more/],
  ['is getting', { held_until: soon }, /^is being brought to the platform$/],
  ['refused', { failure: { kind: 'refused', details: 'Too long.' }, expires_at: soon }, /^the platform did not get it/],
  ['did not get before a crash', {}, /^the platform did not get it at the last try/],
])('a file that the platform %s is told so', async (_state, fields, words) => {
  const id = await newFile()
  await put('media_uploads', { organization_id, phone_number_id, media_id: id, held_until: past, ...fields })
  const upload = (await historyOf(explainMedia, id))[1]
  expect(upload?.what).toMatch(words)
  expect(upload?.details).toMatchObject({ phone_number_id })
  if ('failure' in fields) expect(upload?.details).toMatchObject({ last_error: 'Too long.' })
})

test.each<[string, number | null, number, string]>([
  ['without a quota', null, 0, 'it may send without a quota; no message waits to be sent'],
  ['within its quota', 5, 2, 'it has sent 2 of 5 messages of this month (UTC); no message waits to be sent'],
  [
    'over its quota',
    2,
    2,
    'it has sent 2 of 2 messages of this month (UTC): sends are refused until it ends (quota_used_up); no message waits to be sent',
  ],
])('an organization %s tells so', async (_state, messages_per_month, count, what) => {
  const account = newAccountState()
  await store({ ...account, settings: { ...account.settings, messages_per_month } })
  await app.sql`
    insert into monthly_sends (organization_id, month, count)
    values (${account.organization_id}, date_trunc('month', now() at time zone 'UTC')::date, ${count})
  `
  expect(await historyOf(explainOrganizationSends, account.organization_id)).toMatchObject([{ at: null, what }])
})

test('an organization whose numbers messaging does not know has nothing to tell', async () => {
  expect(await historyOf(explainOrganizationSends, newId('org'))).toEqual([])
})
