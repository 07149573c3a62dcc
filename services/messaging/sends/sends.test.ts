import type { WholeAnswer } from '@app/shared/api/contract.ts'
import { systemCaller } from '@app/shared/bus/ask.ts'
import { until } from '@app/test/until.ts'
import { beforeAll, expect, test } from 'vitest'
import { refuse, type TestMessaging } from '../testing/app.ts'
import { messagingThatSends } from '../testing/sending.ts'
import { newSend } from '../testing/sends.ts'
import { acceptSends } from './accept-send.ts'
import { createKnownConversations } from './known-conversations.ts'
import { sendMessage } from './send-message.ts'

const sending = messagingThatSends()
const { eventually, eventsOf } = sending
let app: TestMessaging
beforeAll(() => void ({ app } = sending))

/** The codes that were reported of accounts. */
const reports = async () =>
  (await app.events()).flatMap(({ subject, payload }) =>
    subject.endsWith('.account-reported') ? [payload['code']] : [],
  )

const bytesOf = (answer: object) => ('whole' in answer ? Buffer.from((answer as WholeAnswer).body).toString() : '')

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
