import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { systemCaller } from '@app/shared/bus/ask.ts'
import { toProblem } from '@app/shared/api/problem.ts'
import { serve } from '@app/shared/bus/rpc.ts'
import { noteRead } from '@app/shared/contracts/directory.ts'
import { newId } from '@app/shared/values/ids.ts'
import { untilSomebodyWaits } from '@app/test/lock-waits.ts'
import { refuse, type TestMessaging, testMessaging } from '../testing/app.ts'
import { businessAccountId, epochNow, inboundValue, metadata, platformOf } from '../testing/callbacks.ts'
import { serveDirectoryChanges } from '../testing/directory-changes.ts'
import { sendReadReceipt } from './send-read-receipt.ts'

let app: TestMessaging
let platform: ReturnType<typeof platformOf>
beforeAll(async () => {
  app = await testMessaging()
  platform = platformOf(app)
})
afterAll(() => app.close())
beforeEach(async () => {
  await app.setSender({})
  app.respondWith((_call, response) => {
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ success: true }))
  })
})

async function received(id: string, more = {}) {
  await platform.messages(inboundValue(id, 'hi', more))
  await vi.waitFor(async () => expect(await statusOf(id)).toBe('delivered'), { timeout: 10_000, interval: 20 })
}
const statusOf = async (id: string) =>
  (await app.sql<{ status: string }[]>`select status from messages where upstream_id = ${id}`)[0]?.status

const receipt = (message_id: string, more = {}) => {
  const { organizationId, phoneNumberId } = app.number
  return sendReadReceipt(app, phoneNumberId, { status: 'read', message_id, ...more }, systemCaller(organizationId))
}
const callsFor = (id: string) => app.calls.filter(({ body }) => body['message_id'] === id)
const reports = async () =>
  (await app.events())
    .filter(({ subject }) => subject === 'event.messaging.account-reported')
    .map(({ payload }) => payload)

test('a receipt reaches the platform and marks the message', async () => {
  await received('wamid.R1')
  expect(await receipt('wamid.R1')).toMatchObject({ status: 200 })
  expect(callsFor('wamid.R1')).toHaveLength(1)
  expect(await statusOf('wamid.R1')).toBe('read')
})

test('a receipt reads what came before in its conversation too, and nothing that came later or stands elsewhere', async () => {
  const from = '15550123477'
  const at = (ago: number) => ({ from, timestamp: String(Number(epochNow()) - ago) })
  await received('wamid.R8.first', at(30))
  await received('wamid.R8.second', at(20))
  await received('wamid.R8.third', at(10))
  await received('wamid.R8.elsewhere', { ...at(40), from: '15550123478' })
  await receipt('wamid.R8.second')
  const statuses = ['first', 'second', 'third', 'elsewhere'].map((name) => statusOf(`wamid.R8.${name}`))
  expect(await Promise.all(statuses)).toEqual(['read', 'read', 'delivered', 'delivered'])
})

test("one organization's receipts leave connections for others", async () => {
  await received('wamid.R21', { from: '15550123479' })
  let ended = 0
  const receipts = await app.sql.begin(async (tx) => {
    // They take as long as those of a conversation with very many messages.
    await tx`select from messages where upstream_id = 'wamid.R21' for update`
    const all = Promise.allSettled(Array.from({ length: 30 }, () => receipt('wamid.R21').finally(() => ended++)))
    await untilSomebodyWaits(app.sql, 2)
    await vi.waitFor(() => expect(callsFor('wamid.R21')).toHaveLength(30), { timeout: 10_000 })
    await app.sql`select 1`
    expect(ended).toBe(0)
    return { all }
  })
  expect((await receipts.all).filter(({ status }) => status === 'fulfilled')).toHaveLength(30)
  expect(await statusOf('wamid.R21')).toBe('read')
})

test('a message that is read already is told to the platform again for its typing indicator alone', async () => {
  await received('wamid.R9')
  for (let n = 0; n < 2; n++) await receipt('wamid.R9')
  expect(callsFor('wamid.R9')).toHaveLength(1)
  await receipt('wamid.R9', { typing_indicator: { type: 'text' } })
  expect(callsFor('wamid.R9').map(({ body }) => body['typing_indicator'])).toEqual([undefined, { type: 'text' }])
})

test('a message that went out, of another number or of another organization has no receipt', async () => {
  await received('wamid.R10')
  const refusal = async (message_id: string, of: Partial<TestMessaging['number']> = {}) => {
    const { organizationId, phoneNumberId } = { ...app.number, ...of }
    const body = { status: 'read', message_id } as const
    return sendReadReceipt(app, phoneNumberId, body, systemCaller(organizationId)).catch(toProblem)
  }
  const [sender] = await app.sql`select * from senders`
  for (const of of [{ phoneNumberId: '999999999999' }, { organizationId: newId('org') }]) {
    await app.sql`insert into senders ${app.sql({ ...sender, ...of, attached: false })}`
    expect(await refusal('wamid.R10', of)).toMatchObject({ failure: 'resource_not_found' })
  }
  await app.sql`update messages set direction = 'outbound' where upstream_id = 'wamid.R10'`
  expect(await refusal('wamid.R10')).toMatchObject({ failure: 'invalid_field_value', param: 'message_id' })
  expect(callsFor('wamid.R10')).toEqual([])
})

test.each([
  ['detached', { attached: false }],
  ['disconnected', { refusal: 'account_not_connected' as const }],
])('a number that is %s tells the platform nothing: its token is not to be used any more', async (how, changes) => {
  const id = `wamid.R2.${how}`
  await received(id)
  await app.setSender(changes)
  await expect(receipt(id)).rejects.toMatchObject({ failure: 'account_not_connected' })
  expect(callsFor(id)).toEqual([])
  expect(await statusOf(id)).toBe('delivered')
})

test('a token that the platform takes no more is reported, as of when it was asked, and the receipt refused', async () => {
  await received('wamid.R3')
  let askedBy = 0
  app.respondWith((...asked) => {
    askedBy = Date.now()
    setTimeout(() => refuse(190, 401)(...asked), 50)
  })
  await expect(receipt('wamid.R3')).rejects.toMatchObject({ failure: 'upstream_refused' })
  const told = await reports()
  const place = { phone_number_id: app.number.phoneNumberId, business_account_id: businessAccountId }
  expect(told).toEqual([{ ...place, code: 190, change: null, at: expect.any(String) }])
  expect(Date.parse(String(told[0]?.['at']))).toBeLessThanOrEqual(askedBy)
  expect(await statusOf('wamid.R3')).toBe('delivered')
})

test('a platform that is not well is no report: the same request goes through later', async () => {
  await received('wamid.R4')
  const before = await reports()
  app.respondWith(refuse(131016, 500))
  await expect(receipt('wamid.R4')).rejects.toMatchObject({ failure: 'upstream_unavailable' })
  expect(await reports()).toEqual(before)
})

test('a refusal that may pass is a 502: of our proof, and what the platform says is transient', async () => {
  await received('wamid.R13')
  for (const error of [
    { code: 100, message: 'Invalid appsecret_proof provided in the API argument' },
    { code: 987_654, message: 'Wait.', is_transient: true },
  ]) {
    app.respondWith((_call, response) =>
      response.writeHead(400, { 'content-type': 'application/json' }).end(JSON.stringify({ error })),
    )
    await expect(receipt('wamid.R13')).rejects.toMatchObject({ failure: 'upstream_unavailable' })
  }
})

test.each([0, 33, 368, 131031, 131042])('a refusal that bears on the account is reported: %i', async (code) => {
  const id = `wamid.R11.${code}`
  await received(id)
  app.respondWith(refuse(code))
  await expect(receipt(id)).rejects.toMatchObject({ failure: 'upstream_refused' })
  expect((await reports()).at(-1)).toMatchObject({ code })
})

test('so is that the platform does not have the number any more, in its own words', async () => {
  await received('wamid.R12')
  const error = { message: 'Unsupported post request.', type: 'GraphMethodException', code: 100, error_subcode: 33 }
  app.respondWith((_call, response) =>
    response.writeHead(400, { 'content-type': 'application/json' }).end(JSON.stringify({ error })),
  )
  const before = (await reports()).length
  await expect(receipt('wamid.R12')).rejects.toMatchObject({ failure: 'upstream_refused' })
  expect((await reports()).slice(before)).toMatchObject([{ phone_number_id: app.number.phoneNumberId, code: 100 }])
})

test.each([131045, 133000])(
  'a number that is not registered refuses the receipt for good: %i, despite its status 500',
  async (code) => {
    const id = `wamid.R7.${code}`
    await received(id)
    app.respondWith(refuse(code, 500))
    await expect(receipt(id)).rejects.toMatchObject({ failure: 'upstream_refused' })
    expect(await statusOf(id)).toBe('delivered')
  },
)

test('directory hears of a receipt that reads nothing new, too, and no event tells of it', async () => {
  const heard: { event_id: string }[] = []
  const directory = await serve(
    { ...app, name: 'directory' },
    { noteRead },
    {
      noteRead: async (_app, { body }) => {
        heard.push(body)
        return { noted: true as const }
      },
    },
  )
  await received('wamid.R6')
  await receipt('wamid.R6')
  const told = await app.events()
  // By their one id directory knows the question and the event for those of one receipt.
  expect(told.map(({ id }) => id)).toContain(heard[0]?.event_id)
  await receipt('wamid.R6')
  expect(heard).toMatchObject([{ read: expect.any(Number) }, { read: 0 }])
  expect(await app.events()).toEqual(told)
  await directory.stop()
})

test('what never counted as unread is not told as read: reactions, system messages and what was exchanged before', async () => {
  const directory = await serveDirectoryChanges(app)
  const from = '15550123499'
  const earlier = (ago: number) => String(Number(epochNow()) - ago)
  const old = (id: string, ago: number) => ({ from, id, timestamp: earlier(ago), type: 'text', text: { body: 'old' } })
  const messages = [old('wamid.R5.old', 90), { ...old('wamid.R5.phone', 80), from: metadata.display_phone_number }]
  await platform.numberChange('history', { history: [{ threads: [{ id: from, messages }] }] })
  const system = { type: 'system', system: { type: 'user_changed_number', wa_id: '15550199999' } }
  const reaction = { type: 'reaction', reaction: { message_id: 'wamid.R1', emoji: '👍' } }
  await platform.messages(inboundValue('wamid.R5.system', '', { from, ...system, timestamp: earlier(60) }))
  await platform.messages(inboundValue('wamid.R5.reaction', '', { from, ...reaction, timestamp: earlier(50) }))
  for (const id of ['wamid.R5.a', 'wamid.R5.b']) await received(id, { from })
  const uncounted = ['wamid.R5.old', 'wamid.R5.system', 'wamid.R5.reaction']
  for (const id of uncounted) await vi.waitFor(async () => expect(await statusOf(id)).toBe('delivered'))
  await app.sql`
    update messages set conversation_id = (select conversation_id from messages where upstream_id = 'wamid.R5.b')
    where upstream_id like 'wamid.R5.%'
  `
  await receipt('wamid.R5.b')
  for (const id of uncounted) expect(await statusOf(id)).toBe('read')
  const told = (await app.events()).filter(({ subject }) => subject === 'event.messaging.messages-read')
  expect(told.at(-1)?.payload).toMatchObject({ read: 2 })
  await directory.stop()
})
