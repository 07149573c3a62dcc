import postgres from 'postgres'
import { request } from 'undici'
import { beforeAll, describe, expect, inject, test } from 'vitest'
import { admin } from '../journeys/admin.ts'
import type { Json } from '../journeys/client.ts'
import { newTenant, type Tenant } from '../journeys/tenant.ts'
import { fill, operations, prefixOf } from './document.ts'
import { rawRequest } from './raw-http.ts'
import { amount, seed } from './seed.ts'
import { neverWas } from './strangers.ts'

const stack = inject('stack')
const origin = new URL(stack.base_url).origin
const gateways = (stack.services['gateway'] ?? []).map(({ public_url }) => public_url ?? '')

/** Requests whose rate a gateway has limited alone, since Redis did not answer it within 50 ms. */
async function fallbacks(): Promise<number> {
  const pages = await Promise.all(
    (stack.services['gateway'] ?? []).map(async ({ url }) => (await request(`${url}/metrics`)).body.text()),
  )
  const counts = pages.map((page) => Number(/^svc_limiter_fallbacks_total\{[^}]*\} (\d+)$/m.exec(page)?.[1]))
  expect(counts.filter((count) => !Number.isInteger(count))).toEqual([])
  return counts.reduce((sum, count) => sum + count, 0)
}

/** How often the budget was there since: once, or in each gateway, on a machine that has too much to do. */
const budgetsSince = async (before: number) => ((await fallbacks()) > before ? gateways.length : 1)

let tenant: Tenant
let revoked: string
let expired: string
beforeAll(async () => {
  tenant = await newTenant()
  const create = (...options: string[]) =>
    admin('key', 'create', '--organization', tenant.id, '--label', 'fuzz', ...options)
  const made = await create()
  revoked = made.key
  await admin('key', 'revoke', made.id)
  const brief = await create('--expires-at', new Date(Date.now() + 3_600_000).toISOString())
  expired = brief.key
  const sql = postgres(stack.postgres_url, { max: 1 })
  await sql`update platform.api_keys set expires_at = now() - interval '1 hour' where id = ${brief.id}`
  await sql.end()
})

const bearer = (text: string) => ['Authorization', `Bearer ${text}`]
const messages: Record<string, string> = {
  missing_api_key: 'Send your API key as "Authorization: Bearer <API_KEY>".',
  invalid_api_key: 'The API key is not valid: send it whole, as "Authorization: Bearer <API_KEY>".',
  revoked_api_key: 'The API key was revoked.',
  expired_api_key: 'The API key has expired.',
}

/** Every form of credentials that are none: headers, query, code. */
function wrongForms(key: string): [what: string, headers: string[], query: string, code: string][] {
  const basic = Buffer.from(`${key}:`).toString('base64')
  return [
    ['nothing', [], '', 'missing_api_key'],
    ['an empty header', ['Authorization', ''], '', 'invalid_api_key'],
    ['the scheme alone', ['Authorization', 'Bearer'], '', 'invalid_api_key'],
    ['the key alone', ['Authorization', key], '', 'invalid_api_key'],
    ['another scheme', ['Authorization', `Basic ${key}`], '', 'invalid_api_key'],
    ['Basic', ['Authorization', `Basic ${basic}`], '', 'invalid_api_key'],
    ['a key of nobody', bearer(`svc_live_${'A'.repeat(24)}`), '', 'invalid_api_key'],
    ['the test prefix', bearer(key.replace('live', 'test')), '', 'invalid_api_key'],
    ['lower case', bearer(key.toLowerCase()), '', 'invalid_api_key'],
    ['upper case', bearer(key.toUpperCase()), '', 'invalid_api_key'],
    ['doubled', bearer(key + key), '', 'invalid_api_key'],
    ['two keys', bearer(`${key}, ${key}`), '', 'invalid_api_key'],
    ['two headers', [...bearer(key), ...bearer(key)], '', 'invalid_api_key'],
    ['a wrong header before it', [...bearer('x'), ...bearer(key)], '', 'invalid_api_key'],
    ['one character less', bearer(key.slice(0, -1)), '', 'invalid_api_key'],
    ['one character more', bearer(`${key}A`), '', 'invalid_api_key'],
    ['another last character', bearer(`${key.slice(0, -1)}${key.endsWith('A') ? 'B' : 'A'}`), '', 'invalid_api_key'],
    ['in quotes', bearer(`"${key}"`), '', 'invalid_api_key'],
    ['beyond ASCII', bearer(`${key}é`), '', 'invalid_api_key'],
    ['a tab inside', ['Authorization', `Bearer\t${key}`], '', 'invalid_api_key'],
    ['20 KB', bearer('A'.repeat(20_000)), '', 'invalid_api_key'],
    ['in the query', [], `?api_key=${key}&access_token=${key}&authorization=Bearer%20${key}`, 'missing_api_key'],
    ['in a cookie', ['Cookie', `api_key=${key}; Authorization=Bearer ${key}`], '', 'missing_api_key'],
    ['in other headers', ['X-Api-Key', key, 'Proxy-Authorization', `Bearer ${key}`], '', 'missing_api_key'],
    ['a revoked key', bearer(revoked), '', 'revoked_api_key'],
    ['an expired key', bearer(expired), '', 'expired_api_key'],
  ]
}

const guarded = operations.filter(({ isPublic }) => !isPublic)

/** In a short run each operation meets every fourth form: each form meets a dozen operations, and which they are goes by the seed. */
const stride = amount(4, 1)

describe.concurrent('whatever is no key is the exact 401', () => {
  test.each(guarded.map((operation, n) => [operation.name, operation, n] as const))('%s', async (_name, operation, n) => {
    const names = Object.fromEntries(operation.pathParameters.map(({ name, schema }) => [name, neverWas(prefixOf(schema), name)]))
    const wrong: string[] = []
    const forms = wrongForms(tenant.key).filter((_form, m) => (m + n + seed) % stride === 0)
    for (const [what, headers, query, code] of forms) {
      const path = `/v1${fill(operation.path, names)}${query}`
      // Its own address each, since failures are counted.
      const { status, text } = await rawRequest(origin, { method: operation.method, path, headers, from: `127.77.${n}.1` })
      const { error } = JSON.parse(text) as Json
      const exact = { type: 'authentication_error', code, message: messages[code], request_id: error.request_id }
      if (status !== 401 || JSON.stringify(error) !== JSON.stringify(exact)) wrong.push(`${what}: ${status} ${text}`)
    }
    expect(wrong).toEqual([])
  }) // prettier-ignore
})

test('a header of 1 MB is refused as too large, in the envelope', async () => {
  const headers = bearer('A'.repeat(1024 * 1024))
  const answer = await rawRequest(origin, { method: 'GET', path: '/v1/me', headers }).catch(() => null)
  // The rest of it is not read: some clients see the end of the connection first.
  if (answer) expect(JSON.parse(answer.text)).toMatchObject({ error: { code: 'headers_too_large' } })
  expect((await tenant.call('GET', '/me')).status).toBe(200)
})

let guessers = 0

test('guesses end after 100 a minute, for their address alone; a valid key is never refused for it', async () => {
  const ask = (from: string, headers: string[], n = 0) =>
    rawRequest(gateways[n % gateways.length] ?? origin, { method: 'GET', path: '/v1/me', headers, from })
  const guesser = `127.78.${++guessers}.1`
  const before = await fallbacks()
  const startedAt = Date.now()
  const answers = await Promise.all(Array.from({ length: 260 }, (_, n) => ask(guesser, bearer(`x${n}`), n)))
  const failed = answers.filter(({ status }) => status === 401).length
  const passedMs = Date.now() - startedAt
  expect(failed).toBeLessThanOrEqual((await budgetsSince(before)) * (101 + (passedMs * 100) / 60_000))
  expect(failed).toBeGreaterThanOrEqual(90)
  for (const { status, headers, text } of answers.filter((one) => one.status !== 401)) {
    expect(status).toBe(429)
    expect(Number(headers['retry-after'])).toBeGreaterThan(0)
    expect(JSON.parse(text)).toMatchObject({ error: { type: 'rate_limit_error', code: 'rate_limit_exceeded' } })
  }
  expect((await ask(guesser, bearer(tenant.key))).status).toBe(200)
  expect((await ask('127.78.0.2', bearer('x'))).status).toBe(401)
})

test('over all gateways no more than the budget is served, errors and 304s counted', async () => {
  const small = await newTenant('--tier', 'starter')
  const phone = await small.connect()
  const tag = String((await small.call('GET', `/${phone}/conversations`)).headers['etag'])
  const paths = ['/me', '/labels/nonsense', `/${phone}/conversations`, '/no/such/route', '/labels?limit=0']
  const before = await fallbacks()
  const startedAt = Date.now()
  const statuses = new Map<number, number>()
  for (let round = 0; round < 14; round++)
    await Promise.all(
      Array.from({ length: 50 }, async (_, n) => {
        const headers = [...bearer(small.key), 'If-None-Match', tag]
        const { status } = await rawRequest(gateways[n % gateways.length] ?? origin, { method: 'GET', path: `/v1${paths[n % paths.length]}`, headers }) // prettier-ignore
        statuses.set(status, (statuses.get(status) ?? 0) + 1)
      }),
    )
  const refused = statuses.get(429) ?? 0
  const served = 700 - refused
  expect([...statuses.keys()].toSorted((a, b) => a - b)).toEqual([200, 304, 400, 404, 429])
  // 600 a minute, of which the preparation spent some, and those that grew back meanwhile.
  const passedMs = Date.now() - startedAt
  expect(served).toBeLessThanOrEqual((await budgetsSince(before)) * (601 + Math.ceil(passedMs / 100)))
  expect(served).toBeGreaterThanOrEqual(500)
})
