import { afterAll, beforeAll, expect, test } from 'vitest'
import { admin } from './admin.ts'
import { client, type Json, newPhone, until } from './client.ts'
import { everyPage, newOrganization } from './organization.ts'
import { type Receiver, startReceiver } from './receiver.ts'

const { api, phone } = client()
const unknownId = 'lbl_01JQ8Z6V0A7XJ2N5T9WQ3RBKCD'
let receiver: Receiver
let stranger: Awaited<ReturnType<typeof newOrganization>>

beforeAll(async () => {
  stranger = await newOrganization()
  receiver = await startReceiver()
  await api('POST', '/webhook_subscriptions', { body: { url: receiver.url, events: ['contact.updated'] } })
})
afterAll(() => receiver.close())

let names = 0
const newName = () => `Label ${newPhone()} ${names++}`
const create = (body: object, options: object = {}) => api('POST', '/labels', { ...options, body })
const newLabel = async (): Promise<Json> => (await create({ name: newName() })).body.data

test('a label is made, read, changed, and gone', async () => {
  const name = newName()
  const { body: me } = await api('GET', '/me')
  const made = await create({ name, color: 'sky' })
  const label = made.body.data
  expect(made.status).toBe(201)
  expect(label).toEqual({
    id: expect.stringMatching(/^lbl_/),
    object: 'label',
    name,
    color: 'sky',
    team_id: me.data.teams[0].id,
    created_at: label.created_at,
    updated_at: label.created_at,
  })
  expect((await api('GET', `/labels/${label.id}`)).body.data).toEqual(label)
  const changed = await api('PATCH', `/labels/${label.id}`, { body: { name: `${name} too`, color: 'red' } })
  expect(changed.body.data).toMatchObject({
    ...label,
    name: `${name} too`,
    color: 'red',
    updated_at: expect.anything(),
  })
  expect((await api('PATCH', `/labels/${label.id}`, { body: {} })).body.data).toEqual(changed.body.data)
  const deleted = await api('DELETE', `/labels/${label.id}`)
  expect(deleted).toMatchObject({ status: 200, body: { data: { id: label.id, object: 'label', deleted: true } } })
  expect((await api('DELETE', `/labels/${label.id}`)).status).toBe(404)
  expect((await create({ name: `${name} too` })).status).toBe(201)
})

test('a name is taken in any case, and a key is answered once', async () => {
  const name = newName()
  const headers = { 'idempotency-key': name }
  const first = await create({ name }, { headers })
  const again = await create({ name }, { headers })
  expect(again).toMatchObject({ status: 201, body: first.body, headers: { 'idempotent-replayed': 'true' } })
  const taken = { status: 409, body: { error: { type: 'conflict', code: 'label_already_exists', param: 'name' } } }
  expect(await create({ name: name.toUpperCase() })).toMatchObject(taken)
  const other = await newLabel()
  expect(await api('PATCH', `/labels/${other.id}`, { body: { name: name.toLowerCase() } })).toMatchObject(taken)
})

test.each([
  [{}, 'name'],
  [{ name: '' }, 'name'],
  [{ name: 'x'.repeat(51) }, 'name'],
  [{ name: 'x', color: 'black' }, 'color'],
  [{ name: 'x', team_id: 'Default' }, 'team_id'],
  [{ name: 'x', team_id: 'team_01JQ8Z6V0A7XJ2N5T9WQ3RBKCD' }, 'team_id'],
])('creating %j is refused', async (body, param) => {
  expect(await create(body)).toMatchObject({ status: 400, body: { error: { code: 'invalid_field_value', param } } })
})

test.each([
  [{ name: '' }, 'name'],
  [{ color: 'black' }, 'color'],
])('changing to %j is refused', async (body, param) => {
  const { id } = await newLabel()
  const refused = await api('PATCH', `/labels/${id}`, { body })
  expect(refused).toMatchObject({ status: 400, body: { error: { code: 'invalid_field_value', param } } })
})

test('a team of a moment ago can be used at once; then a label has to name its team', async () => {
  const { key } = stranger
  const named = async (body: object) => create(body, { key })
  const first = (await named({ name: 'Of the only team' })).body.data
  const team = await admin('team', 'create', '--organization', stranger.id, '--name', 'Second')
  const second = await named({ name: 'Of the only team', team_id: team.id })
  expect(second).toMatchObject({ status: 201, body: { data: { team_id: team.id } } })
  const refused = await named({ name: 'Whose?' })
  expect(refused).toMatchObject({ status: 400, body: { error: { code: 'invalid_field_value', param: 'team_id' } } })
  const contact = await api('POST', `/${stranger.phone}/contacts`, { key, body: { phone_number: newPhone() } })
  const { id } = contact.body.data
  const attach = (label_id: string) =>
    api('POST', `/${stranger.phone}/contacts/${id}/labels`, { key, body: { label_id } })
  expect((await attach(first.id)).status).toBe(200)
  expect(await attach(second.body.data.id)).toMatchObject({
    status: 400,
    body: { error: { code: 'invalid_field_value', param: 'label_id' } },
  })
  const listed = await everyPage(`/labels?team_id=${team.id}`, 10, key)
  expect(listed.map((label) => label.id)).toEqual([second.body.data.id])
  const bulk = await api('POST', `/${stranger.phone}/contacts/bulk_label`, {
    key,
    body: { contact_ids: [id], label_id: second.body.data.id, operation: 'attach' },
  })
  expect(bulk.body.data).toEqual({ applied: 0, skipped_cross_org: 0, skipped_team_mismatch: 1 })
})

test('a deleted label is gone from every contact, and each of them is told of once', async () => {
  const label = await newLabel()
  const contacts = await Promise.all(
    Array.from({ length: 40 }, async () => {
      const { body } = await api('POST', `/${phone}/contacts`, { body: { phone_number: newPhone() } })
      return body.data.id as string
    }),
  )
  const bulk = { contact_ids: contacts, label_id: label.id, operation: 'attach' }
  expect((await api('POST', `/${phone}/contacts/bulk_label`, { body: bulk })).body.data.applied).toBe(40)
  const told = () => receiver.deliveries.map(({ body }) => body.data.contact.id).filter((id) => contacts.includes(id))
  await until(() => expect(told()).toHaveLength(40))
  await api('DELETE', `/labels/${label.id}`)
  expect((await api('GET', `/${phone}/contacts?label_id=${label.id}`)).body.data).toEqual([])
  await until(() => expect(told()).toHaveLength(80))
  expect(new Set(told().slice(40))).toEqual(new Set(contacts))
})

test('a list pages to its end, newest first, each label once, while others are added', async () => {
  const before: string[] = []
  for (let n = 0; n < 7; n++) before.unshift((await newLabel()).id)
  const adding = Promise.all(Array.from({ length: 5 }, () => newLabel()))
  const paged = (await everyPage('/labels', 2)).map(({ id }) => id)
  await adding
  expect(paged).toEqual(paged.toSorted((a, b) => (a < b ? 1 : -1)))
  expect(new Set(paged).size).toBe(paged.length)
  expect(paged.filter((id) => before.includes(id))).toEqual(before)
  const refused = await api('GET', '/labels?team_id=Default')
  expect(refused).toMatchObject({ status: 400, body: { error: { code: 'invalid_field_value', param: 'team_id' } } })
})

test("what is another's, deleted, malformed or was never there is one and the same 404", async () => {
  const { id } = await newLabel()
  const gone = await newLabel()
  await api('DELETE', `/labels/${gone.id}`)
  const asks = (path: string, key?: string): Promise<Json>[] => [
    api('GET', path, key ? { key } : {}),
    api('PATCH', path, { body: { color: 'red' }, ...(key && { key }) }),
    api('DELETE', path, key ? { key } : {}),
  ]
  const answers = await Promise.all([
    ...[gone.id, unknownId, 'nonsense', id.toLowerCase()].flatMap((one) => asks(`/labels/${one}`)),
    ...asks(`/labels/${id}`, stranger.key),
  ])
  const texts = answers.map(({ body }) => JSON.stringify(body).replaceAll(/req_\w+/g, ''))
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([404]))
  expect(new Set(texts).size).toBe(1)
  expect((await everyPage('/labels', 100, stranger.key)).map((label) => label.id)).not.toContain(id)
  expect((await api('GET', `/labels/${id}`)).body.data.color).toBe('gray')
})
