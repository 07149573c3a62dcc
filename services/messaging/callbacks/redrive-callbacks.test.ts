import { systemCaller } from '@app/shared/bus/ask.ts'
import { newId } from '@app/shared/values/ids.ts'
import { until } from '@app/test/until.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { organizationId, type TestMessaging, testMessaging } from '../testing/app.ts'
import { businessAccountId, inboundValue, metadata, platformOf, statusPart } from '../testing/callbacks.ts'
import { redriveCallbacks } from './redrive-callbacks.ts'

let app: TestMessaging
let platform: ReturnType<typeof platformOf>
beforeAll(async () => {
  app = await testMessaging()
  platform = platformOf(app)
})
afterAll(() => app.close())

const settled = () => until(async () => expect(await app.sql`select 1 from callback_items`).toHaveLength(0))

const redrive = (since: Date, caller = systemCaller()) =>
  redriveCallbacks(app, { params: {}, query: {}, body: { since: since.toISOString() } }, caller)
const hourAgo = () => new Date(Date.now() - 60 * 60 * 1000)

async function everything() {
  const messages = await app.sql`
    select id, status, rank, told, content, edits, revoked_at, played_at from messages order by id
  `
  const events = (await app.events()).map(({ id }) => id).toSorted()
  const [kept] = await app.sql`select count(*) from callbacks`
  const counted = await app.sql`select field, reason, count from unhandled_changes order by 1, 2`
  return { messages: [...messages], events, kept, counted: [...counted] }
}

test('what was worked through changes nothing when it is worked through again', async () => {
  const { id } = await app.send('hello')
  await until(async () => expect(await app.statusOf(id)).toBe('sent'))
  const [row] = await app.sql<{ upstreamId: string }[]>`select upstream_id from messages where id = ${id}`
  const statuses = ['sent', 'delivered', 'read', 'played'].map((word) => statusPart(row?.upstreamId ?? '', word))
  const edit = { original_message_id: 'wamid.D1', message: { type: 'text', text: { body: 'two' } } }
  await platform.messages(inboundValue('wamid.D1', 'one'), { statuses })
  await platform.messages(inboundValue('wamid.D1.e', '', { type: 'edit', edit }))
  await platform.change('weather', {})
  await platform.change('account_update', {}, '999')
  await platform.post('{"object":"page"')
  await settled()
  const before = await everything()
  expect(before.events).toContain('wamid.D1')

  expect(await redrive(hourAgo())).toEqual({ service: 'messaging', callbacks: 5, next_since: null })
  await settled()
  expect(await everything()).toEqual(before)
})

test('what was lost on the way is made of the callbacks that are kept', async () => {
  await platform.messages(inboundValue('wamid.D2', 'lost'))
  await settled()
  await app.sql`delete from messages where upstream_id = 'wamid.D2'`
  await redrive(hourAgo())
  await until(async () => expect(await app.sql`select 1 from messages where upstream_id = 'wamid.D2'`).toHaveLength(1))
})

test('what an earlier release could not read is worked through by one that can', async () => {
  await platform.messages(inboundValue('wamid.D5', 'unreadable then'))
  await settled()
  await app.sql`delete from messages where upstream_id = 'wamid.D5'`
  const { count } = await app.sql`
    update callbacks set fault = 'not read' where strpos(convert_from(body, 'UTF8'), 'wamid.D5') > 0
  `
  expect(count).toBe(1)
  await redrive(hourAgo())
  await until(async () => expect(await app.sql`select 1 from messages where upstream_id = 'wamid.D5'`).toHaveLength(1))
})

test('a message that comes again does not bring back the conversation in which it was recorded: its contact may be gone since', async () => {
  const to = '+15550123456'
  await platform.messages(inboundValue('wamid.D4', 'to a contact that is deleted then'))
  await until(() => expect(app.known.find(app.number, to, 'open')).toBeDefined())
  await settled()
  const parties = {
    conversation: { id: newId('cnv'), status: 'open' as const, assigned_to: null },
    contact: { id: newId('ctc'), phone_number: to, name: null },
  }
  app.known.remember(app.number, to, { parties, windowUntilMs: 0 }, performance.now())
  await redrive(hourAgo())
  await settled()
  expect(app.known.find(app.number, to, 'any')?.parties).toEqual(parties)
})

test('what befell a number is told as of when its callback came, also when it is worked through again', async () => {
  await platform.numberChange('messages', { errors: [{ code: 190 }] })
  await settled()
  await app.sql`
    update callbacks set received_at = now() - interval '30 minutes' where convert_from(body, 'UTF8') like '%"code":190%'
  `
  await redrive(hourAgo())
  await settled()
  const reports = (await app.events()).filter(({ subject }) => subject === 'event.messaging.account-reported')
  const agesMs = reports.map(({ payload }) => Date.now() - Date.parse(String(payload['at'])))
  expect(agesMs).toHaveLength(2)
  expect(Math.max(...agesMs)).toBeGreaterThan(29 * 60 * 1000)
})

test('a callback with a bad entry is worked through again like any other', async () => {
  const value = { metadata, ...inboundValue('wamid.D3', 'beside a bad one') }
  const entry = [{ id: businessAccountId }, { id: businessAccountId, changes: [{ field: 'messages', value }] }]
  await platform.post({ object: 'whatsapp_business_account', entry })
  await settled()
  expect(await app.sql`delete from messages where upstream_id = 'wamid.D3' returning 1 as one`).toHaveLength(1)
  await redrive(hourAgo())
  await until(async () => expect(await app.sql`select 1 from messages where upstream_id = 'wamid.D3'`).toHaveLength(1))
})

test('a call comes further, though its time is over before it has begun with what it found', async () => {
  const since = new Date(Date.now() - 50 * 60 * 1000)
  await app.sql`insert into callbacks (received_at, body) values (${since}, '{}')`
  let looks = 0
  const late = {
    ...systemCaller(),
    get deadline() {
      return ++looks === 1 ? Infinity : 0
    },
  }
  expect(await redrive(since, late)).toMatchObject({ callbacks: 1 })
})

test('callbacks of before are left alone', async () => {
  await app.sql`update callbacks set received_at = now() - interval '2 hours'`
  expect(await redrive(hourAgo())).toMatchObject({ callbacks: 0, next_since: null })
})

const sumOf = (counts: number[]) => counts.reduce((sum, count) => sum + count, 0)

/** Asks on and on; the time of each call is over when it looks at it for the third time. Answers how many callbacks each took. */
async function redriveBriefly(since: Date) {
  const counts: number[] = []
  let from = since
  while (counts.length < 50) {
    let looks = 0
    const brief = {
      ...systemCaller(),
      get deadline() {
        return ++looks < 3 ? Infinity : 0
      },
    }
    const answer = await redrive(from, brief)
    if ('whole' in answer) throw new Error('an answer in bytes')
    counts.push(answer.callbacks)
    if (answer.next_since === null) break
    from = new Date(answer.next_since)
  }
  return counts
}

test('more than fits into one call goes on from where it ended', async () => {
  const since = hourAgo()
  await app.sql`
    insert into callbacks (received_at, body) select ${since}::timestamptz + n * interval '100 ms', '{}' from generate_series(1, 1500) n
  `
  const brief = { ...systemCaller(), deadline: performance.now() + 3_000 }
  expect(await redrive(since, brief)).toEqual({
    service: 'messaging',
    callbacks: 0,
    next_since: since.toISOString(),
  })
  const counts = await redriveBriefly(since)
  expect(sumOf(counts)).toBe(1_500)
  expect(Math.max(...counts)).toBeLessThan(1_500)
})

test('callbacks of the largest kind that came in a row are not put into one statement, and a call ends between two of them', async () => {
  const since = new Date(Date.now() - 10 * 60 * 1000)
  const messages = Array.from({ length: 6_000 }, (_, n) => ({ id: `wamid.L${n}`, text: { body: 'x'.repeat(430) } }))
  const value = { metadata: { ...metadata, phone_number_id: '999999' }, history: [{ threads: [{ messages }] }] }
  const entry = [{ id: businessAccountId, changes: [{ field: 'history', value }] }]
  const body = Buffer.from(JSON.stringify({ object: 'whatsapp_business_account', entry }))
  await app.sql`
    insert into callbacks (received_at, body)
    select ${since}::timestamptz + n * interval '1 s', ${body}::bytea from generate_series(1, 5) n
  `
  const counts = await redriveBriefly(since)
  expect(sumOf(counts)).toBe(5)
  expect(Math.max(...counts)).toBeLessThan(5)
})

test('what came for an organization is not worked through for another that has the number by now', async () => {
  const since = new Date()
  const ownersOf = (id: string) => app.sql`select organization_id from messages where upstream_id = ${id}`
  await platform.messages(inboundValue('wamid.D5', 'to the first'))
  await settled()
  const other = { organization_id: newId('org') }
  await app.setSender(other)
  await platform.messages(inboundValue('wamid.D6', 'to the second'))
  await settled()
  await app.sql`delete from messages where upstream_id = 'wamid.D6'`
  await redrive(since)
  await until(async () => expect(await ownersOf('wamid.D6')).toEqual([{ organizationId: other.organization_id }]))
  await settled()
  expect(await ownersOf('wamid.D5')).toEqual([{ organizationId }])
  await app.setSender({ ...other, attached: false })
  await app.setSender({})
  await redrive(since)
  await settled()
  expect(await ownersOf('wamid.D6')).toEqual([{ organizationId: other.organization_id }])
})

test('a change of a business account is not worked through for an organization that has its number by now', async () => {
  const since = new Date()
  const toldTo = () => app.sql`
    select distinct headers ->> 'organization' as organization from outbox
    where subject = 'event.messaging.account-reported' and created_at >= ${since}
  `
  await platform.change('account_update', { event: 'ACCOUNT_RESTRICTION' })
  await settled()
  expect(await toldTo()).toEqual([{ organization: organizationId }])
  await app.setSender({ organization_id: newId('org') })
  await redrive(since)
  await settled()
  expect(await toldTo()).toEqual([{ organization: organizationId }])
})
