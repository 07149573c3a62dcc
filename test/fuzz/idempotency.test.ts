import fc from 'fast-check'
import { request } from 'undici'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { type Json, until } from '../journeys/client.ts'
import { fill, type Operation, operations } from './document.ts'
import { openSocket, untilEnd } from './raw-http.ts'
import { newTenant } from '../journeys/tenant.ts'
import { amount, seed } from './seed.ts'
import { exampleOf } from './valid-requests.ts'
import { knownOf } from './valid-values.ts'
import { makeWorld, pathsOf, type World } from './world.ts'

const stack = inject('stack')
const gateways = (stack.services['gateway'] ?? []).map(({ public_url }) => `${public_url ?? ''}/v1`)
let own: World
let other: World
beforeAll(async () => {
  ;[own, other] = await Promise.all([makeWorld(), makeWorld(4)])
}, 120_000)
afterAll(() => {
  own?.close()
  other?.close()
})

/** Of one request, at a time. */
const copies = amount(8, 20)
const cuts = amount(24, 60)

let keys = 0
const newKey = () => `fuzz "${keys++}" ~ ${own.phone}`

/** An operation's request of a world, ready to be sent; each has a name of its own. */
function requestFor(world: World, operation: Operation, n = 0): { path: string; body: string | null } {
  const { body: schema, example } = operation
  const [names = {}] = pathsOf(world, operation).slice(n)
  const value =
    schema && (fc.sample(exampleOf(example, schema, knownOf(world)), { seed: seed + n, numRuns: 1 })[0] as Json)
  if (value?.to) value.to = world.people[0]
  if (value?.name) value.name = `once_${n}_${world.phone}`
  if (value?.phone_number) value.phone_number = `+1555${String((seed + n) % 10_000_000).padStart(7, '2')}`
  return { path: fill(operation.path, names), body: value ? JSON.stringify(value) : null }
}

interface Answer {
  status: number
  text: string
  replayed: boolean
}

async function post(
  world: Pick<World, 'tenant'>,
  { path, body }: { path: string; body: string | null },
  key: string,
  n = 0,
): Promise<Answer> {
  const {
    statusCode,
    headers,
    body: answer,
  } = await request(`${gateways[n % gateways.length] ?? stack.base_url}${path}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${world.tenant.key}`,
      'idempotency-key': key,
      ...(body !== null && { 'content-type': 'application/json' }),
    },
    body,
  })
  return { status: statusCode, text: await answer.text(), replayed: headers['idempotent-replayed'] === 'true' }
}

/** The same JSON in other words: keys in another order, more space, escapes. */
function inOtherWords(body: string) {
  const reversed = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(reversed)
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(
      Object.entries(value)
        .toReversed()
        .map(([key, item]) => [key, reversed(item)]),
    )
  }
  return JSON.stringify(reversed(JSON.parse(body)), null, 3)
    .replaceAll('e', '\\u0065')
    .replaceAll(/(true|fals|null)\\u0065/g, '$1e')
}

const code = ({ text }: Answer): unknown => (JSON.parse(text) as Json).error?.code

const posts = operations.filter(({ method, takesFile }) => method === 'POST' && !takesFile)

describe('every POST is executed once for a key', () => {
  test.each(posts.map((operation) => [operation.name, operation] as const))('%s', async (_name, operation) => {
    const asked = requestFor(own, operation)
    const key = newKey()
    const answers = await Promise.all(Array.from({ length: copies }, (_, n) => post(own, asked, key, n)))
    const done = answers.filter(({ status }) => status < 300)
    expect(new Set(done.map(({ text }) => text)).size, JSON.stringify(answers)).toBe(1)
    expect(done.filter(({ replayed }) => !replayed)).toHaveLength(1)
    for (const one of answers.filter(({ status }) => status >= 300))
      expect([one.status, code(one)]).toEqual([409, 'idempotency_in_progress'])

    const again = await post(own, asked, key)
    expect(again).toEqual({ ...done[0], replayed: true })
    if (asked.body !== null) {
      expect(await post(own, { ...asked, body: inOtherWords(asked.body) }, key, 1)).toEqual(again)
      const changed = JSON.stringify({ ...(JSON.parse(asked.body) as Json), something: 'else' })
      const other = await post(own, { ...asked, body: changed }, key)
      expect([other.status, code(other)]).toEqual([422, 'idempotency_key_reuse'])
    }
    const elsewhere = await post(own, { ...asked, path: `${asked.path}?other=1` }, key)
    expect([elsewhere.status, code(elsewhere)]).toEqual([422, 'idempotency_key_reuse'])

    const theirs = await post(other, requestFor(other, operation), key)
    expect(theirs).toMatchObject({ status: done[0]?.status, replayed: false })
    expect(theirs.text).not.toBe(again.text)
  }) // prettier-ignore
})

test('a key that met a refusal is as good as new: 400, 404, 409, 422', async () => {
  const key = newKey()
  const label = { path: '/labels', body: JSON.stringify({ name: `Kept ${own.phone}` }) }
  expect((await post(own, label, newKey())).status).toBe(201)
  for (const [path, body, status] of [
    ['/labels', '{"name":""}', 400],
    ['/labels', '{', 400],
    ['/webhook_subscriptions/wbs_nonsense/test', null, 404],
    ['/labels', label.body, 409],
    [
      `/${own.phone}/messages`,
      '{"messaging_product":"chat","to":"+15559999999","type":"text","text":{"body":"x"}}',
      422,
    ],
  ] as const)
    // prettier-ignore
    expect((await post(own, { path, body }, key)).status).toBe(status)
  expect(await post(own, { path: '/labels', body: `{"name":"Free ${own.phone}"}` }, key)).toMatchObject({
    status: 201,
    replayed: false,
  })
})

test('a key that met a used-up budget is as good as new', async () => {
  const tenant = await newTenant('--tier', 'starter')
  // 60 a minute, in each gateway where Redis does not answer in time.
  const asked = Array.from({ length: 60 * gateways.length + 20 }, (_, n) => ({
    key: newKey(),
    label: { path: '/labels', body: JSON.stringify({ name: `Budget ${n}` }) },
  }))
  const answers = await Promise.all(asked.map(({ key, label }, n) => post({ tenant }, label, key, n)))
  const n = answers.findIndex(({ status }) => status === 429)
  const [refused, first] = [answers[n], asked[n]]
  if (!refused || !first) throw new Error('The budget was not used up.')
  expect(code(refused)).toBe('rate_limit_exceeded')
  const { key, label } = first
  const again = () => untilDone(() => post({ tenant }, label, key))
  const done = await again()
  expect(done).toMatchObject({ status: 201, replayed: false })
  expect(await again()).toEqual({ ...done, replayed: true })
})

const countOf = async (path: string, fits: (item: Json) => boolean): Promise<number> =>
  (await own.tenant.ok('GET', `${path}?limit=100`)).filter(fits).length

test('a client that goes away in the middle leaves nothing or the whole, and its retry agrees', { timeout: 120_000 }, async () => {
  const [origin = ''] = gateways.map((gateway) => new URL(gateway).origin)
  await Promise.all(
    Array.from({ length: cuts }, async (_, n) => {
      const name = `Cut ${n} ${own.phone}`
      const body = JSON.stringify({ name })
      const key = newKey()
      const head = [
        'POST /v1/customers HTTP/1.1', 'Host: x', `Authorization: Bearer ${own.tenant.key}`, `Idempotency-Key: ${key}`,
        'Content-Type: application/json', `Content-Length: ${body.length}`, '', '',
      ].join('\r\n') // prettier-ignore
      const whole = head + body
      const socket = await openSocket(origin)
      socket.on('error', () => {})
      // Cut somewhere, or whole and gone at once, or a little later.
      const length = n % 3 === 0 ? Math.floor((whole.length * n) / cuts) : whole.length
      await new Promise<void>((resolve) => socket.write(whole.slice(0, length), () => resolve()))
      if (n % 3 === 2) await new Promise((resolve) => setTimeout(resolve, n / 4))
      if (n % 2 === 0) socket.destroy()
      else socket.resetAndDestroy()
      const retried = await untilDone(() => post(own, { path: '/customers', body }, key, n))
      expect(retried.status).toBe(201)
      expect(await countOf('/customers', (customer) => customer.name === name)).toBe(1)
    }),
  )
}) // prettier-ignore

/** As a client does: again while the first one still runs, or the budget is used up. */
async function untilDone(ask: () => Promise<Answer>): Promise<Answer> {
  let answer = await ask()
  await until(async () => {
    if ([409, 429].includes(answer.status)) answer = await ask()
    expect([409, 429]).not.toContain(answer.status)
  })
  return answer
}

test('a send whose client goes away is sent once', { timeout: 120_000 }, async () => {
  const { origin } = new URL(gateways[0] ?? '')
  const text = `cut off ${own.phone}`
  const body = JSON.stringify({ messaging_product: 'chat', to: own.people[0], type: 'text', text: { body: text } })
  const key = newKey()
  for (let n = 0; n < 20; n++) {
    const socket = await openSocket(origin)
    socket.write(
      `POST /v1/${own.phone}/messages HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${own.tenant.key}\r\nIdempotency-Key: ${key}\r\n` +
        `Content-Type: application/json\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`,
    )
    if (n % 4 === 3) await untilEnd(socket, 20_000)
    else setTimeout(() => socket.resetAndDestroy(), n)
  }
  const { status } = await untilDone(() => post(own, { path: `/${own.phone}/messages`, body }, key))
  expect(status).toBe(200)
  expect(await countOf(`/${own.phone}/messages`, ({ content }) => content === text)).toBe(1)
})
