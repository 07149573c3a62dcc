import { afterAll, beforeAll, expect, test } from 'vitest'
import { client, type Json, newPhone, until } from './client.ts'
import { connectNumber, everyPage, newOrganization } from './organization.ts'
import { type Receiver, startReceiver } from './receiver.ts'

const { api, phone, inbound, sendText } = client()
const unknownId = 'ctc_01JQ8Z6V0A7XJ2N5T9WQ3RBKCD'
let receiver: Receiver
let stranger: Awaited<ReturnType<typeof newOrganization>>
let labelId: string

beforeAll(async () => {
  stranger = await newOrganization()
  receiver = await startReceiver()
  const events = ['contact.created', 'contact.updated', 'message.received']
  const created = await api('POST', '/webhook_subscriptions', { body: { url: receiver.url, events } })
  expect(created.status).toBe(201)
  labelId = (await api('POST', '/labels', { body: { name: `Contacts ${newPhone()}` } })).body.data.id
})
afterAll(() => receiver.close())

const create = (body: object, options: object = {}) => api('POST', `/${phone}/contacts`, { ...options, body })
const newContact = async (body: object = {}): Promise<Json> =>
  (await create({ phone_number: newPhone(), ...body })).body.data

const told = (type: string, id: string) => receiver.of(type).filter(({ body }) => body.data.contact?.id === id)
const notFound = { status: 404, body: { error: { type: 'not_found', code: 'resource_not_found' } } }

test('a contact is made, read, changed and deleted, and each change is told with exactly its fields', async () => {
  const to = newPhone()
  const made = await create({ phone_number: to, name: 'Ana', email: 'ana@example.com', metadata: { plan: 'gold' } })
  const contact = made.body.data
  expect(made.status).toBe(201)
  expect(contact).toEqual({
    id: expect.stringMatching(/^ctc_/),
    object: 'contact',
    phone_number: to,
    bsuid: null,
    parent_bsuid: null,
    username: null,
    name: 'Ana',
    email: 'ana@example.com',
    metadata: { plan: 'gold' },
    chat_account: { phone_number: expect.stringMatching(/^\+/), phone_number_id: phone, customer: null },
    created_at: contact.created_at,
    updated_at: contact.created_at,
  })
  const { id } = contact
  expect((await create({ phone_number: to, name: 'Eva' })).body.data).toEqual(contact)
  expect((await api('GET', `/${phone}/contacts/${id}`)).body.data).toEqual(contact)
  const body = { name: null, metadata: { plan: 'gold' } }
  const changed = (await api('PATCH', `/${phone}/contacts/${id}`, { body })).body.data
  expect(changed).toEqual({ ...contact, name: null, updated_at: changed.updated_at })
  expect((await api('PATCH', `/${phone}/contacts/${id}`, { body })).body.data).toEqual(changed)

  await until(() => expect(told('contact.updated', id)).toHaveLength(1))
  const facts = {
    id,
    object: 'contact',
    phone_number: to,
    email: 'ana@example.com',
    metadata: { plan: 'gold' },
    phone_number_id: phone,
    created_at: contact.created_at,
  }
  const envelope = { id: expect.stringMatching(/^evt_/), created_at: expect.stringMatching(/Z$/) }
  expect(told('contact.created', id).map((event) => event.body)).toEqual([
    {
      ...envelope,
      type: 'contact.created',
      data: { contact: { ...facts, name: 'Ana', updated_at: contact.updated_at } },
    },
  ])
  expect(told('contact.updated', id).map((event) => event.body)).toEqual([
    {
      ...envelope,
      type: 'contact.updated',
      data: { contact: { ...facts, name: null, updated_at: changed.updated_at, changed_fields: ['name'] } },
    },
  ])

  const deleted = await api('DELETE', `/${phone}/contacts/${id}`)
  expect(deleted).toMatchObject({ status: 200, body: { data: { id, object: 'contact', deleted: true } } })
  expect(await api('DELETE', `/${phone}/contacts/${id}`)).toMatchObject(notFound)
})

test('a deleted contact keeps a readable conversation, and comes back as another one', async () => {
  const from = newPhone()
  const found = async () => (await api('GET', `/${phone}/contacts?phone_number=${encodeURIComponent(from)}`)).body.data
  await inbound(from, 'Hello')
  await until(async () => expect(await found()).toHaveLength(1))
  const [{ id }] = await found()
  const listed = await api('GET', `/${phone}/conversations?contact_id=${id}`)
  const conversationId: string = listed.body.data[0].id
  await api('DELETE', `/${phone}/contacts/${id}`)
  expect(await found()).toEqual([])
  const { body } = await api('GET', `/${phone}/conversations/${conversationId}`)
  expect(body.data.contact).toEqual({ id, phone_number: null, name: null })
  await inbound(from, 'Hello again')
  await until(async () => expect(await found()).toMatchObject([{ phone_number: from }]))
  expect((await found())[0].id).not.toBe(id)
})

test('a contact that was deleted a moment ago is not written to any more', async () => {
  const from = newPhone()
  const found = async () => (await api('GET', `/${phone}/contacts?phone_number=${encodeURIComponent(from)}`)).body.data
  await inbound(from, 'Hello')
  await until(async () => expect(await found()).toHaveLength(1))
  const [{ id }] = await found()
  const send = () => sendText('Hi', { to: from })
  // Every instance knows the conversation by then.
  const before = await Promise.all(Array.from({ length: 8 }, send))
  expect(before.map(({ status }) => status)).toEqual(before.map(() => 200))
  await api('DELETE', `/${phone}/contacts/${id}`)
  const refused = { status: 422, body: { error: { code: 'outside_24h_window' } } }
  for (const answer of await Promise.all(Array.from({ length: 8 }, send))) expect(answer).toMatchObject(refused)
})

test.each([
  [{}, 'invalid_field_value', 'phone_number'],
  [{ phone_number: 'Ana' }, 'invalid_phone_number', 'phone_number'],
  [{ phone_number: '' }, 'invalid_phone_number', 'phone_number'],
  [{ phone_number: 15550123456 }, 'invalid_field_value', 'phone_number'],
  [{ bsuid: 'us.1' }, 'invalid_field_value', 'bsuid'],
  [{ bsuid: 'US.1', username: '' }, 'invalid_field_value', 'username'],
  [{ bsuid: 'US.1', username: 'x'.repeat(101) }, 'invalid_field_value', 'username'],
  [{ bsuid: 'US.1', name: '' }, 'invalid_field_value', 'name'],
  [{ bsuid: 'US.1', name: 'x'.repeat(201) }, 'invalid_field_value', 'name'],
  [{ bsuid: 'US.1', email: 'nobody' }, 'invalid_field_value', 'email'],
  [{ bsuid: 'US.1', metadata: 'gold' }, 'invalid_field_value', 'metadata'],
  [{ bsuid: 'US.1', metadata: { a: 'x'.repeat(16 * 1024) } }, 'invalid_field_value', 'metadata'],
])('creating %j is refused', async (body, code, param) => {
  expect(await create(body)).toMatchObject({
    status: 400,
    body: { error: { type: 'invalid_request_error', code, param } },
  })
})

test('a number and a bsuid of two contacts are a conflict', async () => {
  const bsuid = `US.${Date.now()}`
  const { phone_number } = await newContact()
  expect((await create({ bsuid })).body.data).toMatchObject({ bsuid, phone_number: null })
  const conflict = { status: 409, body: { error: { type: 'conflict', code: 'contact_identity_conflict' } } }
  expect(await create({ phone_number, bsuid })).toMatchObject(conflict)
})

test('a key makes one contact and one event, however often it is sent', async () => {
  const headers = { 'idempotency-key': `contact ${newPhone()}` }
  const body = { phone_number: newPhone(), name: 'Once' }
  const first = await create(body, { headers, gateway: 0 })
  const again = await create(body, { headers, gateway: 1 })
  expect(again).toMatchObject({ status: 201, body: first.body, headers: { 'idempotent-replayed': 'true' } })
  const reused = await create({ ...body, name: 'Twice' }, { headers })
  expect(reused).toMatchObject({ status: 422, body: { error: { code: 'idempotency_key_reuse' } } })
})

test.each([
  [{ phone_number: '+15550123456' }, 'phone_number'],
  [{ name: '' }, 'name'],
  [{ email: 'nobody' }, 'email'],
  [{ metadata: [1] }, 'metadata'],
  [{ metadata: { a: '\u0000' } }, 'metadata.a'],
])('changing to %j is refused', async (body, param) => {
  const { id } = await newContact()
  const refused = await api('PATCH', `/${phone}/contacts/${id}`, { body })
  expect(refused).toMatchObject({ status: 400, body: { error: { code: 'invalid_field_value', param } } })
})

test('filters find, add up, and name what is wrong with them', async () => {
  const name = `Zaphod${Date.now()} Bee`
  const bsuid = `US.B${Date.now()}`
  const one = await newContact({ name })
  const two = await newContact({ name: name.toUpperCase(), bsuid, username: 'zaph.two' })
  await api('POST', `/${phone}/contacts/${two.id}/labels`, { body: { label_id: labelId } })
  const ids = async (query: Record<string, string>) => {
    const answer = await api('GET', `/${phone}/contacts?${new URLSearchParams(query).toString()}`)
    return answer.body.data.map(({ id }: Json) => id)
  }
  for (const search of [name, name.toLowerCase(), name.slice(3, 12), `${name.slice(6)}`, ` ${name} `]) {
    expect(await ids({ search })).toEqual([two.id, one.id])
  }
  expect(await ids({ search: one.phone_number.slice(1) })).toEqual([one.id])
  expect(await ids({ search: name, label_id: labelId })).toEqual([two.id])
  expect(await ids({ label_id: labelId })).toEqual([two.id])
  expect(await ids({ bsuid })).toEqual([two.id])
  expect(await ids({ bsuid, phone_number: one.phone_number })).toEqual([])
  expect(await ids({ search: '%_\\' })).toEqual([])
  expect(await ids({ label_id: 'lbl_01JQ8Z6V0A7XJ2N5T9WQ3RBKCD' })).toEqual([])
  for (const [query, code, param] of [
    ['phone_number=Ana', 'invalid_phone_number', 'phone_number'],
    ['phone_number=', 'invalid_phone_number', 'phone_number'],
    ['bsuid=nonsense', 'invalid_field_value', 'bsuid'],
    ['search=', 'invalid_field_value', 'search'],
    [`search=${'x'.repeat(201)}`, 'invalid_field_value', 'search'],
    ['label_id=VIP', 'invalid_field_value', 'label_id'],
    ['limit=0', 'invalid_limit', 'limit'],
    ['limit=1&limit=2', 'invalid_limit', 'limit'],
    ['cursor=x', 'invalid_cursor', 'cursor'],
    ['cursor=x&cursor=y', 'invalid_cursor', 'cursor'],
  ]) {
    const refused = await api('GET', `/${phone}/contacts?${query}`)
    expect(refused).toMatchObject({ status: 400, body: { error: { code, param } } })
  }
})

test('a list pages to its end, each contact once, while others are added', async () => {
  const before = await Promise.all(Array.from({ length: 12 }, () => newContact()))
  const adding = Promise.all(Array.from({ length: 8 }, () => newContact()))
  const paged = (await everyPage(`/${phone}/contacts`, 3)).map(({ id }) => id)
  await adding
  expect(new Set(paged).size).toBe(paged.length)
  expect(paged).toEqual(expect.arrayContaining(before.map(({ id }) => id)))
})

test('labels are attached, detached and shown to whoever listens; each change is told once', async () => {
  const from = newPhone()
  const { id } = await newContact({ phone_number: from, name: 'Ana' })
  const path = `/${phone}/contacts/${id}/labels`
  for (let n = 0; n < 2; n++) {
    const attached = await api('POST', path, { body: { label_id: labelId } })
    expect(attached).toMatchObject({
      status: 200,
      body: { data: { contact_id: id, label_id: labelId, attached: true } },
    })
  }
  const upstreamId = await inbound(from, 'with a label')
  await until(() => {
    const shown = receiver.of('message.received').find(({ headers }) => headers['x-svc-event-id'] === upstreamId)
    expect(shown?.body.svc.labels).toMatchObject([{ id: labelId, color: 'gray' }])
  })
  for (let n = 0; n < 2; n++) {
    const detached = await api('DELETE', `${path}/${labelId}`)
    expect(detached.body.data).toEqual({ contact_id: id, label_id: labelId, attached: false })
  }
  await until(() => expect(told('contact.updated', id)).toHaveLength(2))
  for (const { body } of told('contact.updated', id)) expect(body.data.contact.changed_fields).toEqual(['labels'])
  for (const body of [{}, { label_id: 'VIP' }, { label_id: 7 }]) {
    const refused = await api('POST', path, { body })
    expect(refused).toMatchObject({ status: 400, body: { error: { code: 'invalid_field_value', param: 'label_id' } } })
  }
})

test('1,000 contacts may be named to be labelled at once; what is not the own is counted', async () => {
  const made = await Promise.all(Array.from({ length: 24 }, () => newContact()))
  const ids = made.map(({ id }) => id as string)
  const bulk = (contact_ids: unknown, changes: object = {}) =>
    api('POST', `/${phone}/contacts/bulk_label`, {
      body: { contact_ids, label_id: labelId, operation: 'attach', ...changes },
    })
  const strangers = Array.from({ length: 976 }, (_, n) => `nonsense ${n}`)
  const { status, body } = await bulk([...ids, ...strangers])
  expect([status, body.data]).toEqual([200, { applied: 24, skipped_cross_org: 976, skipped_team_mismatch: 0 }])
  expect((await everyPage(`/${phone}/contacts?label_id=${labelId}`, 10)).map(({ id }) => id)).toEqual(
    expect.arrayContaining(ids),
  )
  expect((await bulk(ids, { operation: 'detach' })).body.data.applied).toBe(24)
  for (const [given, changes, param] of [
    [Array.from({ length: 1001 }, () => unknownId), {}, 'contact_ids'],
    [undefined, {}, 'contact_ids'],
    [[7], {}, 'contact_ids[0]'],
    [[], { label_id: undefined }, 'label_id'],
    [[], { operation: 'paint' }, 'operation'],
  ] as const) {
    expect(await bulk(given, changes)).toMatchObject({
      status: 400,
      body: { error: { code: 'invalid_field_value', param } },
    })
  }
})

test("what is another's, under another path, deleted, malformed or was never there is one and the same 404", async () => {
  const { id } = await newContact()
  const sibling = await connectNumber(stranger.id)
  const theirs = (
    await api('POST', `/${stranger.phone}/contacts`, { key: stranger.key, body: { phone_number: newPhone() } })
  ).body.data.id
  const theirLabel = (await api('POST', '/labels', { key: stranger.key, body: { name: 'Theirs' } })).body.data.id
  const gone = await newContact()
  await api('DELETE', `/${phone}/contacts/${gone.id}`)
  const texts = new Set<string>()
  const asks = (path: string, key?: string): Promise<Json>[] => [
    api('GET', path, key ? { key } : {}),
    api('PATCH', path, { body: { name: 'Eva' }, ...(key && { key }) }),
    api('DELETE', path, key ? { key } : {}),
    api('POST', `${path}/labels`, { body: { label_id: key ? theirLabel : labelId }, ...(key && { key }) }),
    api('DELETE', `${path}/labels/${labelId}`, key ? { key } : {}),
  ]
  const answers = await Promise.all([
    ...[theirs, gone.id, unknownId, 'nonsense', id.toLowerCase()].flatMap((one) => asks(`/${phone}/contacts/${one}`)),
    ...asks(`/${stranger.phone}/contacts/${id}`, stranger.key),
    ...asks(`/${sibling}/contacts/${theirs}`, stranger.key),
    ...asks(`/${phone}/contacts/${id}`, stranger.key),
    ...asks(`/12/contacts/${id}`),
    api('GET', `/${phone}/contacts`, { key: stranger.key }),
    api('POST', `/${phone}/contacts`, { key: stranger.key, body: { phone_number: newPhone() } }),
  ])
  for (const { status, body } of answers) {
    expect(status).toBe(404)
    texts.add(JSON.stringify(body).replaceAll(/req_\w+/g, ''))
  }
  expect(texts.size).toBe(1)
  expect((await api('GET', `/${phone}/contacts/${id}`)).body.data.name).toBeNull()
})
