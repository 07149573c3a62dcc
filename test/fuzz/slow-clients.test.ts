import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, expect, inject, test } from 'vitest'
import type { Json } from '../journeys/client.ts'
import { newTenant, type Tenant } from '../journeys/tenant.ts'
import { firstAnswer, openSocket } from './raw-http.ts'
import { amount } from './seed.ts'

const stack = inject('stack')
const { origin } = new URL(stack.base_url)
const connections = amount(100, 1_000)
/** The gateway's own limits (services/gateway/http.ts, exchange/read-body.ts), and what a busy machine may add. */
const headersMs = 10_000
const bodyMs = 30_000
const busyMs = 15_000

let tenant: Tenant
beforeAll(async () => {
  tenant = await newTenant('--tier', 'unlimited')
})

/** One byte a second, until the other side ends it. */
async function drip(socket: Socket, text: string) {
  for (const character of text) {
    if (socket.destroyed || socket.writableEnded) return
    socket.write(character)
    await sleep(1_000)
  }
}

const head = () =>
  `POST /v1/labels HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${tenant.key}\r\nContent-Type: application/json\r\nContent-Length: 5000\r\n\r\n`

interface Kind {
  what: string
  begin: () => string
  goesOn: string
  withinMs: number
}

const slowHeads: Kind[] = [
  { what: 'a head, a byte a second', begin: () => 'GET /v1/me HTTP/1.1\r\n', goesOn: 'X-Slow: '.padEnd(200, 'x'), withinMs: headersMs },
  { what: 'nothing at all', begin: () => '', goesOn: '', withinMs: headersMs },
] // prettier-ignore
/** Half a minute each: in long runs. */
const slowBodies: Kind[] = [
  { what: 'a body, a byte a second', begin: head, goesOn: '{"name":"'.padEnd(200, 'x'), withinMs: bodyMs },
  { what: 'half a body', begin: () => `${head()}{"name":`, goesOn: '', withinMs: bodyMs },
]
const kinds = amount(0, 1) === 1 ? [...slowHeads, ...slowBodies] : slowHeads

/** How long the others wait, in milliseconds: the median of some requests, one after the other, all of which succeed. */
async function medianWait(count: number) {
  const waits: number[] = []
  for (let n = 0; n < count; n++) {
    const startedAt = performance.now()
    expect((await tenant.call('GET', '/labels')).status).toBe(200)
    waits.push(performance.now() - startedAt)
  }
  return waits.toSorted((a, b) => a - b)[Math.floor(count / 2)] ?? 0
}

test(`${connections} clients that send slowly or not at all are sent away, and the others notice nothing`, { timeout: 120_000 }, async () => {
  const alone = await medianWait(100)
  const sent = await Promise.all(
    Array.from({ length: connections }, async (_, n) => {
      const kind = kinds[n % kinds.length] as Kind
      const socket = await openSocket(origin)
      const answer = firstAnswer(socket, kind.withinMs + busyMs)
      socket.write(kind.begin())
      void drip(socket, kind.goesOn)
      return { answer, kind }
    }),
  )
  // Twice: with all of them there, and while they are sent away.
  for (let n = 0; n < 2; n++) expect(await medianWait(100)).toBeLessThan(alone * 5 + 100)
  for (const { answer, kind } of sent) {
    const text = await answer
    expect(text, kind.what).not.toBeNull()
    if (text === '') continue
    const [first = '', body = ''] = [text?.split('\r\n')[0], text?.split('\r\n\r\n')[1]]
    expect(first, kind.what).toMatch(/^HTTP\/1\.1 4\d\d /)
    expect((JSON.parse(body) as Json).error).toMatchObject({ type: 'invalid_request_error', request_id: expect.stringMatching(/^req_/) })
  }
  expect((await tenant.ok('GET', '/labels')).length).toBe(0)
}) // prettier-ignore

test('a client that does not read its answers holds nobody up', { timeout: 60_000 }, async () => {
  const deaf = await Promise.all(
    Array.from({ length: 50 }, async () => {
      const socket = await openSocket(origin)
      socket.on('error', () => {})
      socket.pause()
      for (let n = 0; n < 50; n++) socket.write('GET /v1/openapi.json HTTP/1.1\r\nHost: x\r\n\r\n')
      return socket
    }),
  )
  for (let n = 0; n < 50; n++) expect((await tenant.call('GET', '/me')).status).toBe(200)
  for (const socket of deaf) socket.destroy()
  expect((await tenant.call('GET', '/me')).status).toBe(200)
})
