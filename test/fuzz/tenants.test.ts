import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { request } from 'undici'
import type { Json } from '../journeys/client.ts'
import { fill, type Operation, operations, prefixOf } from './document.ts'
import { toJsonText } from './raw-json.ts'
import { spoiltOf } from './requests.ts'
import { amount, seed } from './seed.ts'
import { closedPathsOf, neverWas } from './strangers.ts'
import { knownOf } from './valid-values.ts'
import { exampleOf, validOf } from './valid-requests.ts'
import { makeWorld, pathsOf, type World } from './world.ts'

const stack = inject('stack')
let own: World
let other: World
const deleted: Record<string, string> = {}

beforeAll(async () => {
  ;[own, other] = await Promise.all([makeWorld(), makeWorld(4)])
  for (const [prefix, path] of [
    ['ctc', `/${own.phone}/contacts`],
    ['lbl', '/labels'],
    ['wbs', '/webhook_subscriptions'],
  ] as const) {
    deleted[prefix] = own.ids[prefix]?.pop() ?? ''
    await own.tenant.ok('DELETE', `${path}/${deleted[prefix]}`)
  }
  const [secret] = own.secrets.splice(0, 1)
  deleted['sec'] = secret?.secret_id ?? ''
  await own.tenant.ok('DELETE', `/webhook_subscriptions/${secret?.id}/secrets/${deleted['sec']}`)
}, 120_000)
afterAll(() => {
  own?.close()
  other?.close()
})

/** Without what differs in every answer. */
const bare = (text: string) => text.replaceAll(/req_\w{26}/g, 'req_')

async function ask({ method }: Operation, path: string, key: string, body: Json) {
  const answer = await request(stack.base_url + path, {
    method,
    headers: { authorization: `Bearer ${key}`, ...(body !== undefined && { 'content-type': 'application/json' }) },
    body: body === undefined ? null : toJsonText(body),
  })
  return { status: answer.statusCode, text: bare(await answer.body.text()) }
}

/** A body that would do, were the path right. */
const bodyOf = ({ body, example }: Operation): Json =>
  body ? fc.sample(exampleOf(example, body, knownOf(own)), { seed, numRuns: 1 })[0] : undefined

const notFound = bare(
  JSON.stringify({
    error: {
      type: 'not_found',
      code: 'resource_not_found',
      message: 'No such resource: look at the method, the path and the ids.',
      request_id: `req_${'0'.repeat(26)}`,
    },
  }),
)

const withPath = operations.filter(({ pathParameters }) => pathParameters.length > 0)

describe.concurrent('what is not there for an organization is one and the same 404, byte for byte', () => {
  test.each(withPath.map((operation) => [operation.name, operation] as const))('%s', async (_name, operation) => {
    const body = bodyOf(operation)
    const closed = closedPathsOf(operation, own, other, deleted)
    const [names = {}] = pathsOf(own, operation)
    if (operation.method === 'GET' && !operation.path.endsWith('/media'))
      expect((await ask(operation, fill(operation.path, names), own.tenant.key, body)).status).toBe(200)
    const wrong: string[] = []
    const prove = async (why: string, path: string, key: string) => {
      const { status, text } = await ask(operation, path, key, body)
      if (status !== 404 || text !== notFound) wrong.push(`${why}: ${path} answered ${status} ${text.slice(0, 300)}`)
    }
    for (const { why, path } of closed) await prove(why, path, own.tenant.key)
    await prove('asked by a stranger', fill(operation.path, names), other.tenant.key)
    expect(wrong).toEqual([])
  })
})

/** Ids that stand in a body, by operation: the field, what the stranger has there, what never was. */
const inBodies = operations.flatMap((operation) =>
  Object.entries(operation.body?.properties ?? {}).flatMap(([field, schema]) => {
    const prefix = prefixOf(schema)
    return prefix ? [{ operation, field, prefix }] : []
  }),
)

test.each(inBodies.map((one) => [`${one.operation.name} ${one.field}`, one] as const))(
  'an id of another organization in the body of %s is answered as one that never was',
  async (_name, { operation, field, prefix }) => {
    const [names = {}] = pathsOf(own, operation)
    const path = fill(operation.path, names)
    const withId = async (id: string) => {
      const { status, text } = await ask(operation, path, own.tenant.key, { ...bodyOf(operation), [field]: id })
      return { status, text: text.replaceAll(id, '<id>') }
    }
    const theirs = await withId(other.ids[prefix]?.[0] ?? '')
    expect(theirs.status).toBeGreaterThanOrEqual(400)
    expect(theirs).toEqual(await withId(neverWas(prefix)))
    if (deleted[prefix]) expect(theirs).toEqual(await withId(deleted[prefix]))
  },
)

test('another organization’s contacts, numbers, templates and files are answered as ones that never were', async () => {
  const send = operations.find(({ name }) => name === 'POST /{phone_number_id}/messages') as Operation
  const bulk = operations.find(({ name }) => name.endsWith('bulk_label')) as Operation
  const subscribe = operations.find(({ name }) => name === 'POST /webhook_subscriptions') as Operation
  const to = { messaging_product: 'chat', to: own.people[0] }
  const label_id = own.ids['lbl']?.[0]
  const events = ['message.sent']
  const template = (name: string) => ({ ...to, type: 'template', template: { name, language: 'en_US' } })
  const pairs: [Operation, string, (id: string) => Json, string, string][] = [
    [bulk, `/${own.phone}/contacts/bulk_label`, (id) => ({ contact_ids: [id], label_id, operation: 'attach' }), other.ids['ctc']?.[0] ?? '', neverWas('ctc')],
    [subscribe, '/webhook_subscriptions', (id) => ({ url: own.receiver.url, events, phone_number_ids: [id] }), other.phone, neverWas(null, 'phone_number_id')],
    [send, `/${own.phone}/messages`, template, other.templates[0] ?? '', 'no_such_template'],
    [send, `/${own.phone}/messages`, (id) => ({ ...to, type: 'document', document: { id } }), other.ids['med']?.[0] ?? '', neverWas('med')],
    [send, `/${own.phone}/messages`, (id) => ({ messaging_product: 'chat', status: 'read', message_id: id }), other.inbound[0] ?? '', 'wamid.never'],
  ] // prettier-ignore
  for (const [operation, path, body, theirs, never] of pairs) {
    const answerTo = async (id: string) => {
      const { status, text } = await ask(operation, path, own.tenant.key, body(id))
      return { status, text: text.replaceAll(id, '<id>') }
    }
    expect(await answerTo(theirs), `${operation.name} ${JSON.stringify(body(theirs))}`).toEqual(await answerTo(never))
  }
})

const filters = operations.flatMap((operation) =>
  operation.queryParameters.flatMap(({ name, schema }) => {
    const prefix = prefixOf(schema)
    return prefix ? [{ operation, name, prefix }] : []
  }),
)

test.each(filters.map((one) => [`${one.operation.name} ${one.name}`, one] as const))(
  'the filter %s finds nothing of another organization',
  async (_name, { operation, name, prefix }) => {
    const [names = {}] = pathsOf(own, operation)
    const path = fill(operation.path, names)
    const theirs = await ask(operation, `${path}?${name}=${other.ids[prefix]?.[0]}`, own.tenant.key, undefined)
    expect(JSON.parse(theirs.text)).toMatchObject({ data: [], has_more: false, next_cursor: null })
    expect(theirs).toEqual(await ask(operation, `${path}?${name}=${neverWas(prefix)}`, own.tenant.key, undefined))
  },
)

const lists = operations.filter(({ method, name }) => method === 'GET' && operations.some((one) => one.name === name.replace('GET', 'POST'))) // prettier-ignore
const creations = lists.flatMap((list) => {
  const create = operations.find(({ name }) => name === list.name.replace('GET', 'POST'))
  return create?.body && list.queryParameters.some(({ name }) => name === 'limit') ? [{ list, create }] : []
})

test.each(creations.map((one) => [one.create.name, one] as const))(
  'a refused %s leaves nothing behind',
  async (_name, { list, create }) => {
    const read = () => ask(list, `${fill(list.path, pathsOf(own, list)[0] ?? {})}?limit=100`, own.tenant.key, undefined)
    const before = await read()
    const spoilt = fc.sample(spoiltOf(validOf(own, create, knownOf(own)), create.body ?? {}), {
      seed,
      numRuns: amount(12, 40),
    })
    let refused = 0
    for (const { path, headers, body, expected } of spoilt.filter((one) => one.expected.status !== undefined)) {
      const { statusCode, body: answer } = await request(stack.base_url + path, {
        method: 'POST',
        headers: { authorization: `Bearer ${own.tenant.key}`, ...headers },
        body,
      })
      await answer.dump()
      expect(statusCode).toBe(expected.status)
      refused++
    }
    expect(refused).toBeGreaterThan(3)
    expect(await read()).toEqual(before)
  },
)
