import { newIdAt } from '@app/shared/values/ids.ts'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { phoneNumberId, type TestMessaging, testMessaging } from '../testing/app.ts'
import { inboundValue, platformOf } from '../testing/callbacks.ts'
import { json } from '../testing/media-platform.ts'
import { oldMessagesSweep } from './delete-old-messages.ts'
import { sweepDeletedMessages } from './deleted-messages.ts'

let app: TestMessaging
let organizationId: string
beforeAll(async () => {
  app = await testMessaging()
  const [row] = await app.sql<{ organizationId: string }[]>`select organization_id from senders`
  organizationId = row?.organizationId ?? ''
})
afterAll(() => app.close())
beforeEach(async () => {
  await app.sql`delete from messages`
  await app.sql`delete from sends`
  await app.sql`delete from send_attempts`
})

const daysAgo = (days: number) => new Date(Date.now() - days * 24 * 60 * 60 * 1000)

async function insert(days: number, count = 1, { number = phoneNumberId, status = 'read', rank = 5 } = {}) {
  const at = daysAgo(days)
  const rows = Array.from({ length: count }, () => ({ id: newIdAt('msg', at), at: at.toISOString() }))
  await app.sql`
    insert into messages (organization_id, phone_number_id, id, conversation_id, contact_id, direction, type, body, parties,
      status, rank, request_id, created_at)
    select ${organizationId}, ${number}, id, 'cnv_1', 'ctc_1', 'outbound', 'text', '{}', '{}', ${status}, ${rank}, '', at
    from json_to_recordset(${JSON.stringify(rows)}::text::json) as u(id text, at timestamptz)
  `
  await app.sql`
    insert into send_attempts (organization_id, message_id, attempt, begun_at, ended_at, outcome)
    select ${organizationId}, id, 1, now(), now(), 'sent' from unnest(${rows.map(({ id }) => id)}::text[]) id
  `
  return rows.map(({ id }) => id)
}

async function sweep() {
  const run = oldMessagesSweep()
  const counts: number[] = []
  for (let count = await run(app.sql); count > 0; count = await run(app.sql)) counts.push(count)
  return counts
}

const left = async () => (await app.sql<{ id: string }[]>`select id from messages order by id`).map(({ id }) => id)

test('an organization that keeps everything loses nothing', async () => {
  await app.setSender({ retention_days: null })
  const ids = await insert(5_000)
  expect(await sweep()).toEqual([])
  expect(await left()).toEqual(ids)
})

test('what is older than the organization keeps goes with its attempts, 1,000 at a time, and nothing else', async () => {
  await app.setSender({ retention_days: 30 })
  await insert(31, 2_300)
  const young = await insert(29, 3)
  expect(await sweep()).toEqual([1000, 1000, 300])
  expect(await left()).toEqual(young)
  expect(await app.sql`select 1 from send_attempts`).toHaveLength(3)
})

test('the rest after a batch ends with the service, however long it would be', async () => {
  await app.setSender({ retention_days: 30 })
  await insert(31, 10)
  const stopping = new AbortController()
  const run = oldMessagesSweep(stopping.signal)
  let resting: Promise<number | string> | undefined
  // The batch waits for half a second, so its rest is one of several.
  await app.sql.begin(async (tx) => {
    await tx`lock table send_attempts in share mode`
    resting = run(app.sql)
    await sleep(500)
  })
  await vi.waitFor(async () => expect(await left()).toEqual([]))
  stopping.abort()
  expect(await Promise.race([resting, sleep(1_500, 'rests')])).toBe(10)
})

test('other ids of the platform for a message go with it', async () => {
  await app.setSender({ retention_days: 30 })
  const ids = [...(await insert(31)), ...(await insert(29))]
  await app.sql`
    insert into message_doubles (organization_id, upstream_id, message_id)
    select ${organizationId}, 'wamid.' || id, id from unnest(${ids}::text[]) id
  `
  await sweep()
  expect(await app.sql`select message_id from message_doubles`).toEqual([{ messageId: ids[1] }])
})

test('an open send stays until it is over, however many there are before others', async () => {
  await app.setSender({ retention_days: 1 })
  const open = await insert(3, 1_100, { status: 'queued', rank: 0 })
  await insert(2, 5)
  await sweep()
  expect(await left()).toEqual(open)
  await app.sql`update messages set status = 'failed', rank = 6`
  await sweep()
  expect(await left()).toEqual([])
})

test('a message of which a callback told stays while its send is open, so that its conversation goes on', async () => {
  await app.setSender({ retention_days: 1 })
  const ids = await insert(2, 2)
  await app.sql`
    insert into sends (organization_id, phone_number_id, message_id, lane, expires_at)
    select ${organizationId}, ${phoneNumberId}, id, case when id = ${ids[0] ?? ''} then 'cnv_1' else 'cnv_1:' || id end, now()
    from unnest(${ids}::text[]) id
  `
  await sweep()
  expect(await left()).toEqual(ids)
})

test('the file of a customer goes with its message', async () => {
  await app.setSender({ retention_days: 1 })
  const platform = platformOf(app)
  app.files.sent.set('90001', { bytes: Buffer.from('picture'), mimeType: 'image/jpeg' })
  const image = { id: '90001', mime_type: 'image/jpeg' }
  const picture = (id: string, at: Date) =>
    inboundValue(id, '', { type: 'image', image, timestamp: String(Math.floor(at.getTime() / 1000)) })
  await platform.messages(picture('wamid.OLD', daysAgo(2)), picture('wamid.NEW', daysAgo(0)))
  await vi.waitFor(async () => expect(await app.sql`select 1 from media where file_key is not null`).toHaveLength(2), {
    timeout: 10_000,
  })
  await sweep()
  expect(await app.sql`select upstream_id from messages`).toEqual([{ upstreamId: 'wamid.NEW' }])
  expect(await app.sql`select 1 from media`).toHaveLength(1)
  expect(await app.sql`select 1 from unclaimed_files`).toHaveLength(1)
})

test('a message that goes before it was told is told all the same, without its file, and no other', async () => {
  await app.setSender({ retention_days: 1 })
  await app.sql`delete from outbox`
  app.files.answerWith((_call, response) => json(response, { error: { code: 2 } }, 503))
  onTestFinished(() => app.files.answerWith(null))
  const untold = (id: string, upstreamMediaId: string, at: Date) => {
    const timestamp = String(Math.floor(at.getTime() / 1000))
    return inboundValue(id, '', { type: 'image', image: { id: upstreamMediaId, mime_type: 'image/jpeg' }, timestamp })
  }
  await platformOf(app).messages(
    untold('wamid.UNTOLD', '90002', daysAgo(2)),
    untold('wamid.YOUNG', '90003', daysAgo(0)),
  )
  await vi.waitFor(async () => expect(await app.sql`select 1 from media_copies`).toHaveLength(2), 10_000)
  await sweep()
  expect(await app.sql`select upstream_media_id from media_copies`).toEqual([{ upstreamMediaId: '90003' }])
  const [told, ...more] = (await app.events()).filter(({ id }) => id === 'wamid.UNTOLD')
  expect(more).toEqual([])
  expect(told?.payload).toMatchObject({ svc: { media_url: null, media_status: 'failed' } })
})

test('what goes unread is taken off the count of its conversation, and what never counted is not', async () => {
  await app.setSender({ retention_days: 1 })
  await app.sql`delete from outbox`
  const platform = platformOf(app)
  const timestamp = String(Math.floor(daysAgo(2).getTime() / 1000))
  const old = (id: string, more = {}) => inboundValue(id, 'hi', { timestamp, ...more })
  const reaction = { type: 'reaction', reaction: { message_id: 'wamid.U1', emoji: '👍' } }
  const others = [old('wamid.READ'), old('wamid.SENT'), old('wamid.REACTION', reaction)]
  await platform.messages(old('wamid.U1'), old('wamid.U2'), ...others)
  await vi.waitFor(async () => expect(await app.sql`select 1 from messages`).toHaveLength(5), { timeout: 10_000 })
  await app.sql`update messages set status = 'read' where upstream_id = 'wamid.READ'`
  await app.sql`update messages set direction = 'outbound' where upstream_id = 'wamid.SENT'`
  const [row] = await app.sql<{ conversationId: string }[]>`select conversation_id from messages`
  await sweep()
  expect(await left()).toEqual([])
  const read = (await app.events()).filter(({ subject }) => subject === 'event.messaging.messages-read')
  expect(read.map(({ payload }) => payload)).toEqual([{ conversation_id: row?.conversationId, read: 2 }])
})

test('what went is not made anew of a callback that comes again: nothing is told, or taken off a count, a second time', async () => {
  await app.setSender({ retention_days: 1 })
  await app.sql`delete from outbox`
  const platform = platformOf(app)
  // Told by the platform for a week, and kept here for nine days.
  const timestamp = String(Math.floor(daysAgo(15).getTime() / 1000))
  const come = () => platform.messages(inboundValue('wamid.AGAIN', 'hi', { timestamp }))
  const settled = () =>
    vi.waitFor(async () => expect(await app.sql`select 1 from callback_items`).toHaveLength(0), 10_000)
  await come()
  await settled()
  expect(await left()).toHaveLength(1)
  await sweep()
  await come()
  await settled()
  expect(await left()).toEqual([])
  await sweep()
  const told = (await app.events()).map(({ subject }) => subject)
  expect(told).toEqual(['event.messaging.message-received', 'event.messaging.messages-read'])
  expect(await sweepDeletedMessages(app.sql)).toBe(0)
  await app.sql`update deleted_messages set deleted_at = now() - interval '10 days'`
  expect(await sweepDeletedMessages(app.sql)).toBeGreaterThan(0)
  expect(await app.sql`select 1 from deleted_messages`).toHaveLength(0)
})

test('a message comes, though another organization had one of that id that went for its age', async () => {
  await app.sql`insert into deleted_messages (organization_id, upstream_id) values ('org_other', 'wamid.SHARED')`
  await platformOf(app).messages(inboundValue('wamid.SHARED', 'hi'))
  await vi.waitFor(
    async () => expect(await app.sql`select 1 from messages where upstream_id = 'wamid.SHARED'`).toHaveLength(1),
    10_000,
  )
})

test('another organization, and one that keeps longer, lose nothing; a detached number follows its organization', async () => {
  await app.setSender({ retention_days: 30 })
  await app.sql`
    insert into senders (organization_id, phone_number_id, account_id, business_account_id, version, team_id, attached,
      sealed_token, settings, retention_days, updated_at)
    values (${organizationId}, '777777', 'acc_2', '1', 1, 'team_1', false, '', '{}', null, now() + interval '1 hour')
  `
  await app.sql`update messages set organization_id = 'org_other'`
  await insert(31)
  await app.sql`update messages set organization_id = 'org_other'`
  await insert(31, 1, { number: '777777' })
  expect(await sweep()).toEqual([1, 1])
  expect(await left()).toHaveLength(1)
  await app.setSender({ retention_days: 60 })
  await insert(59)
  await sweep()
  expect(await left()).toHaveLength(2)
})

test('an organization that comes to keep longer while its messages are deleted loses no more', async () => {
  await app.setSender({ retention_days: 30 })
  await insert(31, 2_300)
  const run = oldMessagesSweep()
  expect(await run(app.sql)).toBe(1_000)
  await app.setSender({ retention_days: 60 })
  while ((await run(app.sql)) > 0);
  expect(await left()).toHaveLength(1_300)
  await app.setSender({ retention_days: 30 })
  const again = oldMessagesSweep()
  await again(app.sql)
  await app.setSender({ retention_days: null })
  while ((await again(app.sql)) > 0);
  expect(await left()).toHaveLength(300)
})

test('the many messages of one number do not keep those of the next one waiting', async () => {
  await app.setSender({ retention_days: 30 })
  await app.sql`
    insert into senders (organization_id, phone_number_id, account_id, business_account_id, version, team_id, attached,
      sealed_token, settings, retention_days)
    select ${organizationId}, id, 'acc_' || id, '1', 1, 'team_1', true, '', '{}', 30 from unnest('{000001,000002}'::text[]) id
  `
  await insert(31, 3_000, { number: '000001' })
  await insert(31, 1, { number: '000002' })
  const run = oldMessagesSweep()
  expect([await run(app.sql), await run(app.sql)]).toEqual([1_000, 1])
  while ((await run(app.sql)) > 0);
  expect(await left()).toEqual([])
})

test('two instances at once delete every message once', async () => {
  await app.setSender({ retention_days: 30 })
  await insert(31, 2_500)
  const counts = await Promise.all([sweep(), sweep(), sweep()])
  expect(await left()).toEqual([])
  expect(
    counts
      .flat()
      .filter((count) => count > 1)
      .reduce((sum, count) => sum + count, 0),
  ).toBe(2_500)
})
