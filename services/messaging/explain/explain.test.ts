import type { Handler, Input, Rpc } from '@app/shared/api/contract.ts'
import { systemCaller } from '@app/shared/bus/ask.ts'
import type { Moment } from '@app/shared/contracts/explain.ts'
import { newId } from '@app/shared/values/ids.ts'
import { newAccountState } from '@app/test/account-state.ts'
import { createTestDatabase, type TestDatabase } from '@app/test/database.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { App } from '../app.ts'
import { storeSender } from '../senders/put-sender.ts'
import { explainQueue } from './explain-queue.ts'
import { explainSenders } from './explain-senders.ts'
import { explainTemplate } from './explain-template.ts'

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

async function historyOf<C extends Rpc>(handler: Handler<App, C>, body: Input<C>['body']): Promise<Moment[]> {
  const answer = await handler(app, { params: {}, query: {}, body } as Input<C>, systemCaller())
  return (answer as { history: Moment[] }).history
}

const put = (table: string, row: object) => app.sql`insert into ${app.sql(table)} ${app.sql(row as never)}`
const past = new Date('2026-01-02T03:04:05.000Z')
const inMs = (ms: number) => new Date(Date.now() + ms)

async function newTemplate(fields: object) {
  const id = newId('tmpl')
  await put('templates', {
    organization_id,
    business_account_id: '900',
    id,
    name: id.toLowerCase(),
    language: 'en_US',
    status: 'approved',
    upstream_status: 'APPROVED',
    category: 'UTILITY',
    components: [],
    parameter_format: 'positional',
    known_at: past,
    created_at: past,
    updated_at: past,
    ...fields,
  })
  return id
}

const rejected = { status: 'rejected', upstream_status: 'REJECTED' }
test.each<[string, object, string | RegExp]>([
  ['approved', {}, 'is approved: sends with it are taken'],
  [
    'in review',
    { status: 'pending', upstream_status: 'PENDING' },
    /^waits for the platform \(PENDING\): .*_approved\)$/,
  ],
  ['rejected', rejected, 'is refused by the platform (REJECTED): sends with it are too (template_not_approved)'],
  ['rejected for a reason', { ...rejected, rejected_reason: 'INVALID_FORMAT' }, /\(REJECTED, for INVALID_FORMAT\)/],
  ['paused', { status: 'pending', upstream_status: 'PAUSED' }, /^is paused by .* refused \(template_paused\) until/],
  [
    'disabled',
    { status: 'rejected', upstream_status: 'DISABLED' },
    /^is disabled by .* refused \(template_disabled\)$/,
  ],
  [
    'not found for a send',
    { upstream_status: 'DOUBTED' },
    /^was not found .* \(132001\): the next send asks for it first$/,
  ],
  ['gone', { status: 'rejected', upstream_status: 'VANISHED' }, /^is gone: the platform says VANISHED, and sends with/],
  ['being made', { held_until: inMs(30_000) }, 'is being made: the platform has not answered yet'],
  [
    'of an unknown end',
    { held_until: past },
    /^was asked for, and nobody knows whether the platform took it: it is not/,
  ],
])('a template says what sends with it get: one %s', async (_state, fields, words) => {
  const history = await historyOf(explainTemplate, { id: await newTemplate(fields) })
  expect(history[0]).toMatchObject({ at: past.toISOString(), details: { organization_id, language: 'en_US' } })
  expect(history.at(-1)?.what).toMatch(words)
})

const senderNow = async () => (await historyOf(explainSenders, { phone_number_ids: [phone_number_id] })).at(-1)

test.each<[string, Partial<typeof state>, string]>([
  ['taken', {}, 'messaging takes its sends; none waits'],
  ['refused', { refusal: 'customer_suspended' }, 'messaging refuses its sends: customer_suspended; none waits'],
  ['detached', { attached: false }, 'messaging refuses its sends: account_not_connected; none waits'],
  [
    'over its quota',
    { settings: { ...state.settings, messages_per_month: 0 } },
    'messaging refuses its sends until the month (UTC) ends: quota_used_up; none waits',
  ],
])('a number says what messaging does with its sends: %s', async (_state, changes, what) => {
  await store({ ...state, version: ++state.version, ...changes })
  expect(await senderNow()).toMatchObject({
    what,
    details: { organization_id, messages_per_second: 80, settings: { window_check: 'strict', retention_days: null } },
  })
})

test('what waits at a number, and in a conversation, is told with its pace', async () => {
  await store({ ...state, version: ++state.version })
  const conversation = newId('cnv')
  expect(await historyOf(explainQueue, { conversation_id: conversation })).toEqual([
    { at: null, what: 'no message waits to be sent in it' },
  ])
  const [first, second, out] = [newId('msg'), newId('msg'), newId('msg')]
  await send(first, conversation)
  await send(second, conversation)
  await send(out, conversation, `${conversation}:${out}`)
  await app.sql`update pace set tat = now() + interval '1 hour'`
  expect(await senderNow()).toMatchObject({
    what: expect.stringMatching(
      /^messaging takes its sends; 3 wait, the next for the pace of the number, until 20.*Z$/,
    ),
    details: { waiting: 3, oldest: first },
  })
  const queue = await historyOf(explainQueue, { conversation_id: conversation })
  expect(queue.map(({ what }) => what).toSorted()).toEqual([
    `${first} waits for the pace of its number, and 1 more behind it`,
    `${out} waits for the pace of its number`,
  ])
  expect(Number(queue[0]?.details?.['next_at'])).toBeGreaterThan(Date.now())
})

test('of what waits at a number that changed hands an organization is told its own alone', async () => {
  await store({ ...state, version: ++state.version })
  const waiting = async () => Number((await senderNow())?.details?.['waiting'])
  const before = await waiting()
  const [own, others] = [newId('cnv'), newId('cnv')]
  await send(newId('msg'), own)
  await app.sql`update send_lanes set grp = ${`${organization_id}:${phone_number_id}`} where id = ${own}`
  await send(newId('msg'), others)
  await app.sql`update sends set organization_id = ${newId('org')} where lane = ${others}`
  expect(await waiting()).toBe(before + 1)
})

/** An open send that nobody works on. */
async function send(id: string, conversation: string, lane = conversation) {
  const number = { organization_id, phone_number_id }
  await put('messages', {
    ...number,
    id,
    conversation_id: conversation,
    contact_id: newId('ctc'),
    direction: 'outbound',
    type: 'text',
    body: {},
    parties: {},
    status: 'queued',
    rank: 0,
    request_id: newId('req'),
    created_at: past,
  })
  await put('sends', { ...number, message_id: id, lane, expires_at: inMs(3_600_000) })
  await app.sql`insert into send_lanes (id, grp, due_at) values (${lane}, ${phone_number_id}, now()) on conflict do nothing`
}
