import { afterAll, beforeAll, expect, test } from 'vitest'
import { admin } from './admin.ts'
import { client, type Json, newPhone, until } from './client.ts'
import { connectNumber, everyPage, getRaw, newOrganization } from './organization.ts'
import { type Receiver, startReceiver } from './receiver.ts'

const { api, phone, inbound, sendText } = client()
const unknownId = 'cnv_01JQ8Z6V0A7XJ2N5T9WQ3RBKCD'
let receiver: Receiver
let stranger: Awaited<ReturnType<typeof newOrganization>>
let labelId: string

beforeAll(async () => {
  stranger = await newOrganization()
  receiver = await startReceiver()
  const events = ['conversation.assigned', 'conversation.closed', 'message.received']
  await api('POST', '/webhook_subscriptions', { body: { url: receiver.url, events } })
  labelId = (await api('POST', '/labels', { body: { name: `Conversations ${newPhone()}` } })).body.data.id
})
afterAll(() => receiver.close())

/** A customer writes; answers the conversation. */
async function newConversation(from = newPhone()): Promise<Json> {
  await inbound(from, 'Hello')
  return until(async () => {
    const contacts = await api('GET', `/${phone}/contacts?phone_number=${encodeURIComponent(from)}`)
    const { body } = await api('GET', `/${phone}/conversations?contact_id=${contacts.body.data[0].id}`)
    expect(body.data).toMatchObject([{ unread_count: 1 }])
    return body.data[0]
  })
}

const newestFirst = (a: string, b: string) => (a < b ? 1 : -1)

const patch = (id: string, body: object) => api('PATCH', `/${phone}/conversations/${id}`, { body })
const told = (id: string) => receiver.deliveries.filter(({ body }) => body.data?.conversation?.id === id)

test('each real change of status and assignee is told with exactly its fields', async () => {
  const { id, ...before } = await newConversation()
  expect(before).toMatchObject({ status: 'open', assignee: null, last_inbound_at: before.last_message_at })
  expect((await patch(id, { status: 'resolved', assigned_to: 'ana' })).body.data).toMatchObject({
    status: 'resolved',
    assignee: { id: 'ana', name: null, email: null },
  })
  await patch(id, { status: 'resolved', assigned_to: 'ana' })
  await patch(id, { assigned_to: null })
  expect((await api('GET', `/${phone}/conversations/${id}`)).body.data).toMatchObject({
    status: 'resolved',
    assignee: null,
  })
  await until(() => expect(told(id)).toHaveLength(3))
  const { body: me } = await api('GET', '/me')
  const teamId = me.data.teams[0].id
  const envelope = { id: expect.stringMatching(/^evt_/), created_at: expect.stringMatching(/Z$/) }
  const conversation = { id, object: 'conversation', status: 'resolved', phone_number_id: phone }
  const assigned = (user_id: string | null, previous_user_id: string | null) => ({
    ...envelope,
    type: 'conversation.assigned',
    data: { conversation, assignee: { user_id, team_id: teamId, previous_user_id } },
  })
  const closed = {
    ...envelope,
    type: 'conversation.closed',
    data: { conversation: { ...conversation, closed_by_user_id: null } },
  }
  const bodies = told(id).map(({ body }) => body)
  expect(bodies).toHaveLength(3)
  expect(bodies).toEqual(expect.arrayContaining([assigned('ana', null), closed, assigned(null, 'ana')]))
})

test('60 parallel patches: one event for each real change', async () => {
  const { id } = await newConversation()
  for (let n = 0; n < 2; n++) {
    await Promise.all(Array.from({ length: 30 }, () => patch(id, { status: 'resolved', assigned_to: 'ana' })))
  }
  await until(() => expect(told(id)).toHaveLength(2))
  await patch(id, { assigned_to: 'last' })
  await until(() => expect(told(id)).toHaveLength(3))
}, 120_000)

test('an assignee who is a member is shown with name and e-mail', async () => {
  const { id } = await newConversation()
  const { body: me } = await api('GET', '/me')
  const member = { name: 'Eva', email: 'eva@example.com' }
  const { id: userId } = await admin(
    'member', 'create', '--organization', me.data.organization.id, '--team', me.data.teams[0].id,
    '--name', member.name, '--email', member.email,
  ) // prettier-ignore
  await patch(id, { assigned_to: userId })
  await until(async () => {
    const { body } = await api('GET', `/${phone}/conversations/${id}`)
    expect(body.data.assignee).toEqual({ id: userId, ...member })
  })
})

test('a customer who writes reopens what was resolved, and is counted as unread', async () => {
  const from = newPhone()
  const { id } = await newConversation(from)
  await patch(id, { status: 'resolved' })
  await inbound(from, 'One more thing')
  await until(async () => {
    const { body } = await api('GET', `/${phone}/conversations/${id}`)
    expect(body.data).toMatchObject({ status: 'open', unread_count: 2 })
  })
})

test.each([
  [{}, 'status'],
  [{ status: 'closed' }, 'status'],
  [{ assigned_to: '' }, 'assigned_to'],
  [{ assigned_to: 'x'.repeat(65) }, 'assigned_to'],
])('changing to %j is refused', async (body, param) => {
  expect(await patch(unknownId, body)).toMatchObject({
    status: 400,
    body: { error: { code: 'invalid_field_value', param } },
  })
})

test('labels of the conversation are shown in messages', async () => {
  const from = newPhone()
  const { id } = await newConversation(from)
  const path = `/${phone}/conversations/${id}/labels`
  for (let n = 0; n < 2; n++) {
    const attached = await api('POST', path, { body: { label_id: labelId } })
    expect(attached).toMatchObject({
      status: 200,
      body: { data: { conversation_id: id, label_id: labelId, attached: true } },
    })
  }
  const upstreamId = await inbound(from, 'with a label')
  await until(() => {
    const shown = receiver.of('message.received').find(({ headers }) => headers['x-svc-event-id'] === upstreamId)
    expect(shown?.body.svc.labels).toMatchObject([{ id: labelId }])
  })
  for (let n = 0; n < 2; n++) {
    const detached = await api('DELETE', `${path}/${labelId}`)
    expect(detached.body.data).toEqual({ conversation_id: id, label_id: labelId, attached: false })
  }
  const refused = await api('POST', path, { body: { label_id: 'VIP' } })
  expect(refused).toMatchObject({ status: 400, body: { error: { code: 'invalid_field_value', param: 'label_id' } } })
})

test('the list goes by the newest message to its end, each once, while messages come and go', async () => {
  const made = await Promise.all(Array.from({ length: 9 }, () => newConversation()))
  const paged = await everyPage(`/${phone}/conversations`, 2)
  const times = paged.map(({ last_message_at }) => last_message_at ?? '')
  expect(times).toEqual(times.toSorted(newestFirst))
  expect(paged.map(({ id }) => id)).toEqual(expect.arrayContaining(made.map(({ id }) => id)))
  const adding = Promise.all(Array.from({ length: 5 }, () => newConversation()))
  const ids = (await everyPage(`/${phone}/conversations`, 2)).map(({ id }) => id)
  await adding
  expect(new Set(ids).size).toBe(ids.length)
  expect(ids).toEqual(expect.arrayContaining(made.map(({ id }) => id)))
})

test('delta sync shows each change once to a client that passes the newest it saw', async () => {
  const from = newPhone()
  const { id } = await newConversation(from)
  let since = '2026-01-01T00:00:00.000Z'
  const sync = async () => {
    const changed = await everyPage(`/${phone}/conversations?updated_since=${encodeURIComponent(since)}`, 50)
    const times = changed.map(({ updated_at }) => updated_at)
    expect(times).toEqual(times.toSorted(newestFirst))
    since = times[0] ?? since
    return changed.map((one) => one.id)
  }
  await until(async () => expect(await sync()).toContain(id))
  for (const change of [
    () => patch(id, { status: 'pending' }),
    () => sendText('moves it', { to: from }),
    () => patch(id, { assigned_to: 'ana' }),
  ]) {
    await change()
    await until(async () => expect(await sync()).toContain(id))
  }
  expect(await sync()).not.toContain(id)
  const refused = await api('GET', `/${phone}/conversations?updated_since=yesterday`)
  expect(refused).toMatchObject({
    status: 400,
    body: { error: { code: 'invalid_field_value', param: 'updated_since' } },
  })
  const latest = await api('GET', `/${phone}/conversations?updated_since=9999-12-31T23:59:59-01:00`)
  expect(latest).toMatchObject({ status: 200, body: { data: [] } })
  const { next_cursor: cursor } = (await api('GET', `/${phone}/conversations?limit=1`)).body
  const other = await api('GET', `/${phone}/conversations?updated_since=2026-01-01T00:00:00Z&cursor=${cursor}`)
  expect(other).toMatchObject({ status: 400, body: { error: { code: 'invalid_cursor' } } })
})

test('a list that has not changed is not sent again', async () => {
  const { id, contact } = await newConversation()
  const path = `/${phone}/conversations?contact_id=${contact.id}`
  const first = await getRaw(path)
  const tag = String(first.headers['etag'])
  expect(tag).toMatch(/^W\/"/)
  const same = await getRaw(path, { 'if-none-match': tag })
  expect([same.status, same.text, same.headers['etag']]).toEqual([304, '', tag])
  expect(same.headers['x-ratelimit-remaining']).toMatch(/^\d+$/)
  expect(same.headers['x-request-id']).toMatch(/^req_/)
  await patch(id, { status: 'pending' })
  const changed = await getRaw(path, { 'if-none-match': tag })
  expect(changed.status).toBe(200)
  expect(changed.headers['etag']).not.toBe(tag)
})

test('filters that are malformed are named', async () => {
  for (const [query, code, param] of [
    ['status=closed', 'invalid_field_value', 'status'],
    ['contact_id=Ana', 'invalid_field_value', 'contact_id'],
    ['limit=101', 'invalid_limit', 'limit'],
    ['cursor=x', 'invalid_cursor', 'cursor'],
  ]) {
    const refused = await api('GET', `/${phone}/conversations?${query}`)
    expect(refused).toMatchObject({ status: 400, body: { error: { code, param } } })
  }
  const unknown = await api('GET', `/${phone}/conversations?contact_id=ctc_01JQ8Z6V0A7XJ2N5T9WQ3RBKCD`)
  expect(unknown.body.data).toEqual([])
})

test("what is another's, under another path, malformed or was never there is one and the same 404", async () => {
  const { id } = await newConversation()
  const sibling = await connectNumber(stranger.id)
  const theirLabel = (await api('POST', '/labels', { key: stranger.key, body: { name: 'Theirs' } })).body.data.id
  const asks = (path: string, key?: string): Promise<Json>[] => [
    api('GET', path, key ? { key } : {}),
    api('PATCH', path, { body: { status: 'resolved' }, ...(key && { key }) }),
    api('POST', `${path}/labels`, { body: { label_id: key ? theirLabel : labelId }, ...(key && { key }) }),
    api('DELETE', `${path}/labels/${labelId}`, key ? { key } : {}),
  ]
  const answers = await Promise.all([
    ...[unknownId, 'nonsense', id.toLowerCase()].flatMap((one) => asks(`/${phone}/conversations/${one}`)),
    ...[stranger.phone, sibling, phone].flatMap((number) => asks(`/${number}/conversations/${id}`, stranger.key)),
    ...asks(`/12/conversations/${id}`),
    api('DELETE', `/${phone}/conversations/${id}/labels/${theirLabel}`),
    api('GET', `/${phone}/conversations`, { key: stranger.key }),
  ])
  const texts = answers.map(({ body }) => JSON.stringify(body).replaceAll(/req_\w+/g, ''))
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([404]))
  expect(new Set(texts).size).toBe(1)
  expect(await api('POST', `/${phone}/conversations/${id}/labels`, { body: { label_id: theirLabel } })).toMatchObject({
    status: 404,
    body: { error: { code: 'resource_not_found', param: 'label_id' } },
  })
  expect((await api('GET', `/${phone}/conversations/${id}`)).body.data.status).toBe('open')
})
