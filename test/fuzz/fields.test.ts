import fc from 'fast-check'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { type Json, until } from '../journeys/client.ts'
import { fill, type Operation, operations } from './document.ts'
import { failuresOf } from './failures-of.ts'
import { checkLaws, send } from './laws.ts'
import { mutationsOf } from './mutations.ts'
import { toJsonText } from './raw-json.ts'
import type { Request } from './request.ts'
import { wrongTexts } from './requests.ts'
import { type Real, samplesOf, templateSends } from './samples.ts'
import { amount, seed } from './seed.ts'
import { makeWorld, pathsOf, type World } from './world.ts'

const stack = inject('stack')
const count = amount(1_000, Infinity)

let world: World
beforeAll(async () => {
  world = await makeWorld()
}, 120_000)
afterAll(() => world?.close())

const pathOf = (operation: Operation) => fill(operation.path, pathsOf(world, operation)[0] ?? {})

/** A request that is made when it is sent: the bodies of all are hundreds of megabytes. */
type Later = () => Request

/** A body of each kind that the operation takes, with one field of it spoilt. */
function ofBody(operation: Operation, real: Real): Later[] {
  const { body: schema } = operation
  if (!schema) return []
  const more = operation.name === 'POST /{phone_number_id}/messages' ? templateSends(real) : []
  // Two samples of one kind differ in little.
  const different = new Map(
    [...samplesOf(schema, real), ...more].flatMap((sample) => {
      const kind = kindOf(sample)
      return mutationsOf(schema, sample).map((one) => [`${kind} ${one.what}`, one])
    }),
  )
  return [...different.values()].map(({ what, body, param }) => () => ({
    operation,
    what,
    path: pathOf(operation),
    headers: { 'content-type': 'application/json' },
    body: Buffer.from(toJsonText(body)),
    expected: { status: 400, param },
  }))
}

/** What a body says of itself and its parts. */
const kindOf = (body: unknown) => [...toJsonText(body).matchAll(/"type":"\w+"/g)].join()

/** A parameter of the query that is wrong, or stands there twice. */
const ofQuery = (operation: Operation): Later[] =>
  operation.queryParameters.flatMap(({ name, schema }) => {
    const queries = wrongTexts(name, schema).map((text) => `${name}=${encodeURIComponent(text)}`)
    return [...queries, `${name}=1&${name}=1`].map((query) => () => ({
      operation,
      what: query.slice(0, 40),
      path: `${pathOf(operation)}?${query}`,
      headers: {},
      body: null,
      expected: { status: 400, param: name },
    }))
  })

const codes: Record<string, string> = { limit: 'invalid_limit', cursor: 'invalid_cursor' }
/** Words of the program, which say nothing to who asks. */
const jargon = /(?<![.\w])(invalid|undefined|NaN|expected|received|unrecognized|pattern|object Object)|\/\^/i

/** Throws when the answer breaks a law, has another code than is due, or does not say in words what is wrong. */
async function prove(request: Request) {
  const answer = await send(stack.base_url, world.tenant.key, request)
  checkLaws(request, answer)
  const { code, message, param } = (JSON.parse(answer.text) as Json).error
  if (code === 'invalid_phone_number') return
  const due = (request.body === null && codes[param]) || 'invalid_field_value'
  if (code !== due) throw new Error(`its code is ${code} where ${due} is due`)
  if (!message.includes(param) || !message.endsWith('.') || jargon.test(message.replaceAll(param, '')))
    throw new Error(`it says: ${message}`)
}

const lists = operations.filter(
  ({ queryParameters, path }) => path !== '/webhook_deliveries' && queryParameters.some(({ name }) => name === 'limit'),
)

/** All that there is, but for deliveries, which come on their own. */
async function everything(): Promise<Json> {
  const pages = lists.map(async (operation) => {
    const path = `${pathOf(operation)}?limit=100${operation.path.endsWith('/templates') ? '&status=all' : ''}`
    return [path, (await world.tenant.call('GET', path)).body.data]
  })
  return Promise.all(pages)
}

/** Statuses, reviews and replays of what was made before are over; a template that is pending still changes. */
async function settled(): Promise<Json> {
  let before = await everything()
  await until(async () => {
    const now = await everything()
    const [last, ...others] = [before, now]
    before = now
    expect(JSON.stringify(now)).not.toMatch(/"status":"(queued|running)"|"object":"template"[^{}]*"status":"pending"/)
    expect(others).toEqual([last])
  })
  return before
}

const reals = (): Real => ({
  to: world.people[0],
  phone_number: '+15552223344',
  message_id: world.inbound[0],
  label_id: world.ids['lbl']?.[0],
  contact_ids: world.ids['ctc']?.slice(0, 2),
  team_id: world.ids['team']?.[0],
  subscription_id: world.ids['wbs']?.[0],
  phone_number_ids: [world.phone],
  link: world.fileUrl,
  url: world.receiver.url,
  emoji: '👍',
  since: '2026-01-01T00:00:00Z',
  until: '2026-02-01T00:00:00Z',
})

test('each field that is wrong is a 400 that names it alone and says what is allowed, and nothing has changed', { timeout: 600_000 }, async () => {
  const all = operations.flatMap((operation) => [...ofBody(operation, reals()), ...ofQuery(operation)])
  const length = Math.min(count, all.length)
  const [requests = []] = fc.sample(fc.shuffledSubarray(all, { minLength: length, maxLength: length }), { seed, numRuns: 1 })
  const before = await settled()
  const failures = await failuresOf(requests, (later) => later(), prove)
  expect(failures.slice(0, 20).join('\n'), `FUZZ_SEED=${seed}: ${failures.length} of ${length}`).toBe('')
  expect(await everything()).toEqual(before)
}) // prettier-ignore
