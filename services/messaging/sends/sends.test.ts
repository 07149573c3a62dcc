import { systemCaller } from '@app/shared/bus/ask.ts'
import type { WholeAnswer } from '@app/shared/api/contract.ts'
import { newId } from '@app/shared/values/ids.ts'
import { untilSomebodyWaits } from '@app/test/lock-waits.ts'
import { until } from '@app/test/until.ts'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { acceptSends } from './accept-send.ts'
import { createKnownConversations } from './known-conversations.ts'
import { insertSends } from './insert-sends.ts'
import { burstMs, leaseMs } from './pace.ts'
import { sendMessage } from './send-message.ts'
import { sweepLetOutLanes } from './sweep-lanes.ts'
import { accept, phoneNumberId, refuse, type TestMessaging, testMessaging } from '../testing/app.ts'
import { newSend } from '../testing/sends.ts'

let app: TestMessaging
beforeAll(async () => {
  app = await testMessaging()
})
afterAll(() => app.close())
beforeEach(() => app.respondWith(accept))

const eventually = (id: string, status: string) => until(async () => expect(await app.statusOf(id)).toBe(status))
/** The codes that were reported of accounts. */
const reports = async () =>
  (await app.events()).flatMap(({ subject, payload }) =>
    subject.endsWith('.account-reported') ? [payload['code']] : [],
  )
const eventsOf = async (id: string) => (await app.events()).filter((event) => event.id.startsWith(id))

const bytesOf = (answer: object) => ('whole' in answer ? Buffer.from((answer as WholeAnswer).body).toString() : '')

/** Lets the time of a parked or waiting send pass. */
async function passTime(id: string, lane: string) {
  await app.sql`update sends set parked_until = now() - interval '1 s' where message_id = ${id} and parked_until is not null`
  await app.sql`update send_lanes set due_at = now() where id = ${lane}`
  app.dispatcher.wake()
}

test('an accepted send reaches the platform once, and message.sent tells of it once', async () => {
  const { id } = await app.send('hello')
  await eventually(id, 'sent')
  expect(app.calls.filter((call) => call.messageId === id)).toMatchObject([
    { to: '+15550123456', text: 'hello', messageId: id },
  ])
  const [event, ...more] = await eventsOf(id)
  expect(more).toEqual([])
  expect(event).toMatchObject({
    id: `${id}:sent`,
    subject: 'event.messaging.message-sent',
    payload: {
      type: 'message.sent',
      data: { message: { id, body: 'hello', from: '+15550001111', to: '+15550123456' } },
    },
  })
})

test('50 parallel sends with one key make one message; the same key with another body is refused', async () => {
  const answers = await Promise.all(Array.from({ length: 50 }, () => app.send('once', { key: 'k1' })))
  expect(new Set(answers.map(({ id }) => id)).size).toBe(1)
  await eventually(answers[0]?.id ?? '', 'sent')
  expect(app.calls.filter(({ text }) => text === 'once')).toHaveLength(1)
  for (const other of [{}, { to: 'nobody' }])
    await expect(app.send('twice', { key: 'k1', ...other })).rejects.toMatchObject({ failure: 'idempotency_key_reuse' })
})

test('a refused send leaves nothing, not even its key; a retry of an accepted one is answered though the window closed since', async () => {
  const to = '+15550199999'
  app.closedWindows.add(to)
  await expect(app.send('no', { to, key: 'k2' })).rejects.toMatchObject({ failure: 'outside_24h_window' })
  expect(await app.sql`select 1 from messages where recipient = ${to}`).toHaveLength(0)
  app.closedWindows.delete(to)
  const first = await app.send('no', { to, key: 'k2' })
  app.closedWindows.add(to)
  app.known.remember(app.number, to, { parties: {} as never, windowUntilMs: 0 }, performance.now())
  expect(await app.send('no', { to, key: 'k2' })).toEqual(first)
})

test('a retry of an accepted send is answered though directory is away', async () => {
  const { organizationId, phoneNumberId } = app.number
  const body = { messaging_product: 'chat' as const, to: '+15550177002', type: 'text' as const, text: { body: 'away' } }
  const key = { idempotency: { key: 'k3', fingerprint: 'away' } }
  const ask = (changes: Partial<TestMessaging>) =>
    sendMessage(
      { ...app, known: createKnownConversations({ wholeSince: () => Infinity }), ...changes },
      { params: { phone_number_id: phoneNumberId }, query: {}, body },
      { ...systemCaller(organizationId), ...key },
    )
  const away = { isConnected: () => false }
  await expect(ask(away)).rejects.toMatchObject({ failure: 'service_unavailable' })
  const first = await ask({})
  const again = await ask(away)
  expect(first).toMatchObject({ status: 200, replayed: false })
  expect(again).toMatchObject({ status: 200, replayed: true })
  expect(bytesOf(again)).toEqual(bytesOf(first))
})

test('messages of a conversation keep their order through a retry', async () => {
  const to = '+15550100001'
  let refused = 0
  app.respondWith((call, response, n) => {
    if (call.text === 'first' && refused++ === 0) refuse(131056)(call, response, n)
    else accept(call, response, n)
  })
  const sends = [await app.send('first', { to }), await app.send('second', { to }), await app.send('third', { to })]
  await eventually(sends[2]?.id ?? '', 'sent')
  const calls = app.calls.filter((call) => call.to === to).map(({ text }) => text)
  expect(calls).toEqual(['first', 'first', 'second', 'third'])
})

test('with relaxed ordering a send that failed twice lets the later ones of its conversation pass, and goes out itself', async () => {
  await app.setSender({ settings: { ...app.settings, ordering: 'relaxed' } })
  app.respondWith((call, response, n) =>
    call.text === 'stubborn' ? refuse(131000, 500)(call, response, n) : accept(call, response, n),
  )
  const to = '+15550100026'
  const { id, conversationId: lane } = await app.send('stubborn', { to })
  const behind = await app.send('behind it', { to })
  const calls = (text: string) => app.calls.filter((call) => call.text === text)
  const waits = async (attempts: number) =>
    expect(
      await app.sql`select lane from sends where message_id = ${id} and attempts = ${attempts} and begun_at is null`,
    )
  await until(async () => (await waits(1)).toEqual([{ lane }]))
  expect(calls('behind it')).toEqual([])
  await passTime(id, lane)
  await eventually(behind.id, 'sent')
  const own = `${lane}:${id}`
  await until(async () => (await waits(2)).toEqual([{ lane: own }]))
  app.respondWith(accept)
  expect(await sweepLetOutLanes(app.sql)).toBe(0)
  await passTime(id, own)
  await eventually(id, 'sent')
  expect(calls('stubborn')).toHaveLength(3)
  // Its lane goes, that of the conversation stays.
  await until(async () => (await sweepLetOutLanes(app.sql)) === 1)
  expect(await app.sql`select id from send_lanes where id in (${lane}, ${own})`).toEqual([{ id: lane }])
  await app.setSender({ settings: app.settings })
})

test('a send that has failed twice already lets the later ones pass once relaxed ordering is chosen, and waits where it is then', async () => {
  app.respondWith((call, response, n) =>
    call.text === 'long stubborn' ? refuse(131000, 500)(call, response, n) : accept(call, response, n),
  )
  const to = '+15550100027'
  const { id, conversationId: lane } = await app.send('long stubborn', { to })
  const behind = await app.send('behind it', { to })
  const failed = (attempts: number, inLane: string) =>
    until(async () =>
      expect(
        await app.sql`select lane from sends where message_id = ${id} and attempts = ${attempts} and begun_at is null`,
      ).toEqual([{ lane: inLane }]),
    )
  await failed(1, lane)
  await passTime(id, lane)
  await failed(2, lane)
  await app.setSender({ settings: { ...app.settings, ordering: 'relaxed' } })
  await passTime(id, lane)
  await eventually(behind.id, 'sent')
  const own = `${lane}:${id}`
  await failed(3, own)
  await passTime(id, own)
  await failed(4, own)
  app.respondWith(accept)
  await passTime(id, own)
  await eventually(id, 'sent')
  await app.setSender({ settings: app.settings })
})

test('a send whose token nothing opens has surely not been sent: it is tried again, and goes out when the token opens', async () => {
  const to = '+15550100088'
  await app.setSender({ sealed_token: 'k0.AAAAAAAAAAAAAAAA.AAAAAAAAAAAAAAAAAAAAAAAA' })
  const { id, conversationId } = await app.send('sealed', { to })
  await until(async () => {
    const attempts = await app.sql`select outcome, detail from send_attempts where message_id = ${id}`
    expect(attempts).toEqual([{ outcome: 'unreachable', detail: 'The stored token of the number does not open.' }])
  })
  expect(await app.sql`select attempts from sends where message_id = ${id}`).toEqual([{ attempts: 1 }])
  await app.setSender({})
  await passTime(id, conversationId)
  await eventually(id, 'sent')
  expect(app.calls.filter((call) => call.to === to)).toHaveLength(1)
})

test('a reply names what it answers, to the platform and in message.sent', async () => {
  const quoted = { message_id: 'wamid.QUOTED' }
  const text = { type: 'text', text: { body: 'yes' } } as const
  const { id } = await app.sendBody({ messaging_product: 'chat', to: '+15550100005', context: quoted, ...text })
  await eventually(id, 'sent')
  expect(app.calls.find(({ messageId }) => messageId === id)?.body).toMatchObject({ context: quoted })
  expect((await eventsOf(id))[0]?.payload).toMatchObject({
    data: { message: { reply_to_provider_id: 'wamid.QUOTED' } },
  })
})

test('a permanent refusal fails the message with its code and tells it with the code of the platform', async () => {
  app.respondWith(refuse(131026))
  const { id } = await app.send('nobody', { to: '+15550100002' })
  await eventually(id, 'failed')
  const [row] = await app.sql`select error from messages where id = ${id}`
  expect(row?.['error']).toMatchObject({ code: 'recipient_unreachable', provider_code: 131026 })
  const [event] = await eventsOf(id)
  expect(event).toMatchObject({ id: `${id}:failed`, subject: 'event.messaging.message-status-reported' })
  expect(JSON.stringify(event?.payload)).toContain('"code":131026')
})

test.each([
  ['+15550100004', { recipient_id: '15550100004' }],
  ['US.13491208655302741918', { recipient_user_id: 'US.13491208655302741918' }],
])('a failure that we tell of names its recipient as the platform does: %s', async (to, names) => {
  app.respondWith(refuse(131026))
  const { id } = await app.send('nobody', { to })
  await eventually(id, 'failed')
  const [event] = await eventsOf(id)
  const told = { id, status: 'failed', timestamp: expect.any(String), ...names, errors: [expect.anything()] }
  const value = { metadata: { display_phone_number: '15550001111' }, statuses: [told] }
  expect(event?.payload).toMatchObject({ entry: [{ changes: [{ value }] }] })
  expect(JSON.stringify(event?.payload).match(/recipient_(user_)?id/g)).toEqual(Object.keys(names))
})

test('a refusal over the account is told as of when the platform was asked: since then it may be connected anew', async () => {
  let askedBy = 0
  app.respondWith((...asked) => {
    askedBy = Date.now()
    setTimeout(() => refuse(190, 401)(...asked), 50)
  })
  const { id } = await app.send('void', { to: '+15550100190' })
  await eventually(id, 'failed')
  const told = (await app.events()).filter(({ subject }) => subject === 'event.messaging.account-reported')
  expect(told).toMatchObject([{ payload: { code: 190, at: expect.any(String) } }])
  expect(Date.parse(String(told[0]?.payload['at']))).toBeLessThanOrEqual(askedBy)
})

test.each([
  ['the number is gone', { code: 100, error_subcode: 33 }, [100]],
  ['a parameter is not valid', { code: 100 }, []],
])('a refusal because %s: whether the account is looked at', async (_, error, codes) => {
  app.respondWith((_call, response) => {
    response.writeHead(400, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ error: { message: 'Unsupported post request.', ...error } }))
  })
  const before = (await reports()).length
  const { id } = await app.send('from nowhere', { to: '+15550100005' })
  await eventually(id, 'failed')
  expect((await reports()).slice(before)).toEqual(codes)
})

test.each([
  [
    'for our proof, which is wrong while the app’s secret is set anew,',
    { code: 100, message: 'Invalid appsecret_proof provided in the API argument' },
  ],
  ['with a code that nobody knows, as transient,', { code: 987_654, message: 'Wait.', is_transient: true }],
])('a send that is refused %s is tried again', async (_, error) => {
  app.respondWith((_call, response) => {
    response.writeHead(400, { 'content-type': 'application/json' }).end(JSON.stringify({ error }))
  })
  const { id, conversationId } = await app.send('passing', { to: '+15550100100' })
  await until(async () =>
    expect(
      await app.sql`select 1 from sends where message_id = ${id} and attempts = 1 and begun_at is null`,
    ).toHaveLength(1),
  )
  app.respondWith(accept)
  await passTime(id, conversationId)
  await eventually(id, 'sent')
})

test('an outcome that nobody knows is never sent again: it waits for a callback, then fails as delivery_unknown', async () => {
  const to = '+15550100003'
  app.respondWith((_call, response) => response.destroy())
  const { id, conversationId } = await app.send('lost', { to })
  const behind = await app.send('behind it', { to })
  await until(async () =>
    expect(await app.sql`select 1 from sends where message_id = ${id} and parked_until > now()`).toHaveLength(1),
  )
  expect(await app.statusOf(behind.id)).toBe('queued')
  app.respondWith(accept)
  await passTime(id, conversationId)
  await eventually(id, 'failed')
  await eventually(behind.id, 'sent')
  expect(app.calls.filter((call) => call.messageId === id)).toHaveLength(1)
  const [row] = await app.sql`select error, rank from messages where id = ${id}`
  expect(row).toMatchObject({ rank: 2, error: { code: 'delivery_unknown', provider_code: null } })
  expect(JSON.stringify((await eventsOf(id))[0]?.payload)).toContain('"code":-1')
})

test('an attempt that was found begun belongs to a dispatcher that died: it is not made again', async () => {
  const to = '+15550100004'
  const { conversationId } = await app.send('warm up', { to })
  await until(async () => expect(await app.sql`select 1 from sends where lane = ${conversationId}`).toHaveLength(0))
  await app.sql`update send_lanes set held_until = now() + interval '1 hour' where id = ${conversationId}`
  const { id } = await app.send('begun', { to })
  await app.sql`update sends set begun_at = now(), attempts = 1 where message_id = ${id}`
  await app.sql`update send_lanes set held_until = '-infinity', due_at = now() where id = ${conversationId}`
  app.dispatcher.wake()
  await until(async () =>
    expect(await app.sql`select 1 from sends where message_id = ${id} and parked_until > now()`).toHaveLength(1),
  )
  await passTime(id, conversationId)
  await eventually(id, 'failed')
  expect(app.calls.filter((call) => call.messageId === id)).toHaveLength(0)
  const attempts = await app.sql`select outcome, detail from send_attempts where message_id = ${id}`
  expect(attempts).toEqual([{ outcome: 'unknown', detail: 'the dispatcher died in the call' }])
})

test('a suspension ends what is queued, and none of it reaches the platform', async () => {
  const to = '+15550100005'
  app.respondWith(refuse(131000, 500))
  const { id } = await app.send('waiting', { to })
  await until(async () => expect(await app.sql`select 1 from send_attempts where message_id = ${id}`).toHaveLength(1))
  const behind = await app.send('behind', { to })
  const calls = app.calls.length
  await app.setSender({ refusal: 'customer_suspended' })
  await eventually(id, 'failed')
  await eventually(behind.id, 'failed')
  expect(app.calls).toHaveLength(calls)
  const [row] = await app.sql`select error from messages where id = ${behind.id}`
  expect(row?.['error']).toMatchObject({ code: 'customer_suspended', provider_code: null })
  await expect(app.send('more', { to })).rejects.toMatchObject({ failure: 'customer_suspended' })
  await app.setSender({ refusal: null })
})

test('a suspension that comes while the platform is asked ends a send that would be tried again', async () => {
  const answers: (() => void)[] = []
  // The platform's maintenance: a minute until the next try.
  app.respondWith((...call) => answers.push(() => refuse(131057, 500)(...call)))
  const { id } = await app.send('under way', { to: '+15550100025' })
  await until(async () => expect(app.calls.some((call) => call.messageId === id)).toBe(true))
  await app.setSender({ refusal: 'customer_suspended' })
  for (const answer of answers) answer()
  await eventually(id, 'failed')
  const [row] = await app.sql`select error from messages where id = ${id}`
  expect(row?.['error']).toMatchObject({ code: 'customer_suspended' })
  await app.setSender({ refusal: null })
})

test('a number that may not send is refused before directory is asked, so that nothing is made', async () => {
  await app.setSender({ refusal: 'account_not_connected' })
  const to = '+15550177001'
  app.closedWindows.add(to)
  await expect(app.send('no', { to })).rejects.toMatchObject({ failure: 'account_not_connected' })
  await app.setSender({ refusal: null })
})

test('a template is sent though the window is closed; marketing is asked for each time, as people may not want it', async () => {
  const [to, language] = ['+15550177009', 'en_US']
  await app.sql`
    insert into templates (organization_id, business_account_id, id, name, language, status, upstream_status, category,
      components, parameter_format, known_at, created_at, updated_at)
    select organization_id, business_account_id, 'tmpl_' || t.name, t.name, ${language}, 'approved', 'APPROVED', category,
      '[{"type":"BODY","text":"Hello."}]', 'positional', now(), now(), now()
    from senders, (values ('notice', 'UTILITY'), ('offer', 'MARKETING')) t(name, category)
    where phone_number_id = ${app.number.phoneNumberId}
  `
  const send = (name: string) =>
    app.sendBody({ messaging_product: 'chat', to, type: 'template', template: { name, language: { code: language } } })
  const asked = () => app.opened.filter((one) => one === to).length
  app.closedWindows.add(to)
  const { id } = await send('notice')
  await send('notice')
  expect(asked()).toBe(1)
  await send('offer')
  await send('offer')
  expect(asked()).toBe(3)
  expect(await app.sql`select content from messages where id = ${id}`).toEqual([{ content: 'Hello.' }])
  await app.setSender({ refusal: 'customer_suspended' })
  await expect(send('unknown')).rejects.toMatchObject({ failure: 'customer_suspended' })
  await app.setSender({ refusal: null })
})

test('a month that is used up refuses sends, whatever number they come from, until the quota is raised', async () => {
  const used = { [app.number.organizationId]: 3, [newId('org')]: 100 }
  for (const [organization, count] of Object.entries(used)) {
    await app.sql`
      insert into monthly_sends select ${organization}, date_trunc('month', now() at time zone 'UTC') - age, ${count}::int
      from unnest('{0 months,1 month}'::interval[]) age
    `
  }
  const quota = (messages_per_month: number | null) =>
    app.setSender({ settings: { ...app.settings, messages_per_month } })
  await quota(5)
  const sends = Array.from({ length: 8 }, (_, n) => app.send('counted', { to: `+155501601${n}0` }))
  const outcomes = await Promise.allSettled(sends)
  expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(2)
  for (const outcome of outcomes) {
    if (outcome.status === 'rejected')
      expect(outcome.reason).toMatchObject({ failure: 'quota_used_up', code: 'invalid_request' })
  }
  await quota(6)
  await app.send('one more', { to: '+15550160200' })
  await expect(app.send('not one more', { to: '+15550160400' })).rejects.toMatchObject({ failure: 'quota_used_up' })
  expect(app.opened).not.toContain('+15550160400')
  await quota(null)
  await app.send('as many as it likes', { to: '+15550160300' })
})

test('an older state of the account changes nothing', async () => {
  await app.setSender({ refusal: 'account_restricted', version: 0 })
  const { id } = await app.send('fine', { to: '+15550100006' })
  await eventually(id, 'sent')
})

test('the pair limit is kept: 45 messages at once to a recipient, then one every 6 s', async () => {
  const to = '+15550100007'
  const sends = await Promise.all(Array.from({ length: 47 }, (_, n) => app.send(`burst ${n}`, { to })))
  await until(async () => expect(app.calls.filter((call) => call.to === to)).toHaveLength(45))
  await until(async () => {
    const [lane] = await app.sql<{ waitMs: number }[]>`
      select extract(epoch from due_at - now())::float8 * 1000 as wait_ms from send_lanes
      where id = ${sends[0]?.conversationId ?? ''}
    `
    expect(lane?.waitMs).toBeGreaterThan(1_000)
    expect(lane?.waitMs).toBeLessThan(7_500)
  })
  expect(app.calls.filter((call) => call.to === to)).toHaveLength(45)
})

test('a refusal is taken over only when the calls that had begun are done, and none begins afterwards', async () => {
  const answers: (() => void)[] = []
  app.respondWith((call, response, n) => answers.push(() => accept(call, response, n)))
  const recipients = Array.from({ length: 20 }, (_, n) => `+1555012${String(n).padStart(4, '0')}`)
  await Promise.all(recipients.map((to) => app.send('under way', { to })))
  await until(async () => expect(answers.length).toBeGreaterThan(0))
  const number = app.number.phoneNumberId
  let isDone = false
  const refused = app.putSender({ refusal: 'customer_suspended' }).then(() => (isDone = true))
  await new Promise((resolve) => setTimeout(resolve, 200))
  expect(isDone).toBe(false)
  const begun = answers.length
  for (const answer of answers) answer()
  await refused
  expect(answers).toHaveLength(begun)
  const [open] =
    await app.sql`select count(*)::int from sends where phone_number_id = ${number} and begun_at is not null`
  expect(open?.['count']).toBe(0)
  await app.setSender({ refusal: null })
})

test('a number whose messages are too many rests once, however many of them were refused', async () => {
  const answers: (() => void)[] = []
  app.respondWith((...call) => answers.push(() => refuse(131048)(...call)))
  const recipients = Array.from({ length: 10 }, (_, n) => `+15550180${n}00`)
  const sends = await Promise.all(recipients.map((to) => app.send('too many', { to })))
  // What an earlier test has left may be called for beside them.
  await until(async () => expect(app.calls.filter(({ to }) => recipients.includes(to))).toHaveLength(recipients.length))
  for (const answer of answers) answer()
  for (const { id } of sends) await eventually(id, 'failed')
  const [row] = await app.sql<{ restMs: number }[]>`
    select extract(epoch from tat - now())::float8 * 1000 as rest_ms from pace where grp = ${app.number.phoneNumberId}
  `
  await app.sql`update pace set tat = now()`
  expect(row?.restMs).toBeGreaterThan(5_000)
  expect(row?.restMs).toBeLessThanOrEqual(10_000)
})

test('a number that rests is locked before the conversations, as by who accepts sends: neither waits for the other', async () => {
  const { sql } = app
  const refused = Promise.withResolvers<() => void>()
  // What tests before this one left is tried again meanwhile.
  app.respondWith((...asked) =>
    asked[0].text === 'too many' ? refused.resolve(() => refuse(130429)(...asked)) : accept(...asked),
  )
  const { id, conversationId } = await app.send('too many', { to: '+15550100131' })
  const answer = await refused.promise
  await sql.begin(async (tx) => {
    await tx`select from pace where grp = ${phoneNumberId} for update`
    answer()
    await untilSomebodyWaits(sql)
    await tx`select from send_lanes where id = ${conversationId} for update nowait`
  })
  await until(async () => expect(await app.sql`select 1 from send_attempts where message_id = ${id}`).toHaveLength(1))
  app.respondWith(accept)
  await sql`update pace set tat = now()`
  await passTime(id, conversationId)
  await eventually(id, 'sent')
})

test('an unknown outcome is sent again as often as any other attempt, and then fails as unknown', async () => {
  const to = '+15550180077'
  await app.setSender({ settings: { ...app.settings, unknown_outcome: 'resend' } })
  app.respondWith((_call, response) => response.destroy())
  const { id, conversationId } = await app.send('never answered', { to })
  const untilParked = (attempts: number) =>
    until(async () =>
      expect(await app.sql`select attempts from sends where message_id = ${id} and parked_until > now()`).toEqual([
        { attempts },
      ]),
    )
  await untilParked(1)
  await passTime(id, conversationId)
  await untilParked(2)
  await app.sql`update sends set attempts = 7 where message_id = ${id}`
  await passTime(id, conversationId)
  await eventually(id, 'failed')
  expect(app.calls.filter((call) => call.messageId === id)).toHaveLength(2)
  expect(await app.sql`select rank, error ->> 'code' as code from messages where id = ${id}`).toEqual([
    { rank: 2, code: 'delivery_unknown' },
  ])
  await app.setSender({})
})

test('a number that another organization has now sends nothing more for the one that had it, though nobody told that it was detached', async () => {
  const to = '+15550180078'
  app.respondWith(refuse(131000, 500))
  const { id, conversationId } = await app.send('waiting', { to })
  await until(async () => expect(await app.sql`select 1 from send_attempts where message_id = ${id}`).toHaveLength(1))
  const calls = app.calls.length
  await app.setSender({ organization_id: newId('org') })
  await passTime(id, conversationId)
  await eventually(id, 'failed')
  expect(app.calls).toHaveLength(calls)
  await expect(app.send('more', { to })).rejects.toMatchObject({ failure: 'account_not_connected' })
  await app.setSender({})
})

test('who has a number now waits for nothing that another organization had queued there', async () => {
  const { sql } = app
  const before = newId('org')
  await app.setSender({ organization_id: before })
  await sql.begin(async (tx) => {
    // Nothing is claimed meanwhile.
    await tx`select from pace where grp = ${phoneNumberId} for update`
    const queued = Array.from({ length: 500 }, (_, n) =>
      newSend('late', `+1555019${1000 + n}`, { organization_id: before }),
    )
    await insertSends(sql, queued, { mayBegin: [], leaseMs, burstMs, holder: 1 })
  })
  await app.setSender({})
  const { id } = await app.send('mine', { to: '+15550100777' })
  await eventually(id, 'sent')
  const [rest] = await sql<{ count: number }[]>`select count(*)::int from sends where organization_id = ${before}`
  expect(rest?.count).toBeGreaterThan(300)
  await sql`delete from sends where organization_id = ${before}`
})

test('an accept whose answer was lost is sent all the same, once', async () => {
  const losing = new Proxy(app.sql, {
    apply(target, self, args: unknown[]) {
      const query = Reflect.apply(target as never, self, args) as Promise<unknown>
      if (!String(args[0]).includes('counted as')) return query
      return query.then(() => {
        throw Object.assign(new Error('the connection was lost'), { code: 'CONNECTION_CLOSED' })
      })
    },
  })
  const acceptOne = acceptSends({ sql: losing, log: app.log }, app.dispatcher)
  const { organizationId: organization_id, phoneNumberId: phone_number_id } = app.number
  const accepting = acceptOne(newSend('lost answer', '+15550100077', { organization_id, phone_number_id }))
  await expect(accepting).rejects.toThrow('the connection was lost')
  await until(async () => {
    const rows = await app.sql`select id, status from messages where recipient = '+15550100077'`
    expect(rows).toMatchObject([{ status: 'sent' }])
  })
  expect(app.calls.filter(({ text }) => text === 'lost answer')).toHaveLength(1)
})
