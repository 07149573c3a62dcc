import { createServer } from 'node:http'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { listen } from '../listen.ts'
import { png } from '../png.ts'
import { client, type Json, until } from './client.ts'

const { api, phone, control } = client()
/** The smallest beginning that is one of a PNG. */
const picture = png(200_000)
const server = createServer((_request, response) =>
  response.writeHead(200, { 'content-type': 'image/png' }).end(picture),
)

let port: number
beforeAll(async () => {
  port = await listen(server)
})
afterAll(() => server.close().closeAllConnections())

let names = 0
const newName = () => `journey_${process.pid}_${names++}`
const text = 'Hi {{1}}, order {{2}} has shipped.'
const order = (name: string, more: object = {}) => ({
  name,
  language: 'en_US',
  category: 'UTILITY',
  components: [{ type: 'BODY', text, example: { body_text: [['Ana', 'A1']] } }],
  ...more,
})
const path = `/${phone}/templates`
const create = (body: object, headers: Record<string, string> = {}) => api('POST', path, { body, headers })
const read = async (name: string): Promise<Json> => (await api('GET', `${path}/${name}`)).body.data

test('a template is submitted, approved by the platform’s callback, and listed', async () => {
  const name = newName()
  const created = await create(order(name))
  expect(created.status).toBe(201)
  expect(created.body.data).toMatchObject({
    object: 'template',
    name,
    status: 'pending',
    content: text,
    variables: ['1', '2'],
    chat_account: { phone_number: expect.stringMatching(/^\+/) },
    provider_template_id: expect.stringMatching(/^\d+$/),
  })
  await until(async () => expect(await read(name)).toMatchObject({ status: 'approved' }))
  const listed = await api('GET', `${path}?language=en_US&limit=100`)
  expect(listed.body.data.map((one: Json) => one.id)).toContain(created.body.data.id)
  expect(new Set(listed.body.data.map((one: Json) => one.status))).toEqual(new Set(['approved']))
})

test('an edit is reviewed again; while a review is pending there is no other', async () => {
  const name = newName()
  await create(order(name))
  await until(async () => expect(await read(name)).toMatchObject({ status: 'approved' }))
  await control('/control/settings', { reviews: { [name]: 'hold' } })
  const body = { components: [{ type: 'BODY', text: 'Other words.' }] }
  const edited = await api('PATCH', `${path}/${name}`, { body })
  expect(edited).toMatchObject({ status: 200, body: { data: { status: 'pending', content: 'Other words.' } } })
  const again = await api('PATCH', `${path}/${name}`, { body })
  expect(again).toMatchObject({ status: 409, body: { error: { type: 'conflict', code: 'template_not_editable' } } })
  const { data } = await control(`/control/templates?phone_number_id=${phone}`, undefined, 'GET')
  const { id } = data.find((one: Json) => one.name === name)
  await control(`/control/templates/${id}`, { status: 'REJECTED' })
  await until(async () => expect(await read(name)).toMatchObject({ status: 'rejected' }))
})

test('a header’s sample is fetched and uploaded', async () => {
  const url = `http://127.0.0.1:${port}/picture.png`
  const header = { type: 'HEADER', format: 'IMAGE', example: { header_url: url } }
  const { status, body } = await create(order(newName(), { components: [header, { type: 'BODY', text: 'Look.' }] }))
  expect(status).toBe(201)
  expect(body.data.components[0].example).toEqual({ header_handle: [expect.any(String)] })
})

test('each refusal has its status, code and field', async () => {
  const name = newName()
  const headers = { 'idempotency-key': name }
  const first = await create(order(name), headers)
  const again = await create(order(name), headers)
  expect(again.body).toEqual(first.body)
  expect(again.headers['idempotent-replayed']).toBe('true')
  const refusals: Array<[object, number, string, string]> = [
    [order(name), 409, 'template_already_exists', 'name'],
    [order('Capital'), 400, 'invalid_field_value', 'name'],
    [order(newName(), { language: 'x' }), 400, 'invalid_field_value', 'language'],
    [order(newName(), { category: 'OTHER' }), 400, 'invalid_field_value', 'category'],
    [order(newName(), { components: [] }), 400, 'invalid_field_value', 'components'],
    [
      order(newName(), { components: [{ type: 'BODY', text: '{{1}} a' }] }),
      400,
      'invalid_field_value',
      'components[0].text',
    ],
  ]
  for (const [body, status, code, param] of refusals) {
    const answer = await create(body)
    expect(answer).toMatchObject({ status, body: { error: { code, param } } })
  }
  expect((await api('GET', `${path}/${newName()}`)).status).toBe(404)
  expect((await api('PATCH', `${path}/${newName()}`, { body: { category: 'UTILITY' } })).status).toBe(404)
  expect((await api('GET', `${path}?status=other`)).body.error).toMatchObject({
    code: 'invalid_field_value',
    param: 'status',
  })
})

test('what the platform refuses is a 400 in its words; a platform that is away a 502, after which a retry goes on', async () => {
  const name = newName()
  // Templates of other numbers are other tests'.
  const { data: numbers }: Json = await control('/control/numbers', undefined, 'GET')
  const account = numbers.find(({ phone_number_id }: Json) => phone_number_id === phone).business_account_id
  const templates = { path: `${account}/message_templates` }
  await control('/control/faults', { match: templates, fault: { kind: 'error', code: 100, status: 400 } })
  const refused = await create(order(name))
  expect(refused).toMatchObject({ status: 400, body: { error: { code: 'invalid_field_value' } } })
  await control('/control/faults', { match: templates, fault: { kind: 'reset' } })
  const headers = { 'idempotency-key': newName() }
  const away = await create(order(name), headers)
  expect(away).toMatchObject({ status: 502, body: { error: { type: 'api_error', code: 'upstream_error' } } })
  expect((await create(order(name), headers)).status).toBe(201)
})

test('a sync takes over what the platform has, and finds nothing new the second time', async () => {
  expect((await api('POST', `${path}/sync`)).status).toBe(200)
  const { body } = await api('POST', `${path}/sync`)
  expect(body.data).toMatchObject({ created: 0, synced: expect.any(Number) })
  expect(body.data.synced).toBeGreaterThan(0)
})
