import { randomBytes, randomInt } from 'node:crypto'
import { once } from 'node:events'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { findMedia } from '@app/shared/contracts/media.ts'
import { notFound } from '@app/shared/api/problem.ts'
import { serve, type Serving } from '@app/shared/bus/rpc.ts'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { startTestGateway, type TestGateway } from '../testing/gateway.ts'

const many = 150
/** As many of one owner are asked for at a time. */
const ofOne = 64

let gateway: TestGateway
let messaging: Serving
let waitForFile = () => Promise.resolve()

beforeAll(async () => {
  gateway = await startTestGateway()
  messaging = await serve(
    { ...gateway.peer, name: 'messaging' },
    { findMedia },
    { findMedia: () => waitForFile().then(() => Promise.reject(notFound())) },
  )
})
beforeEach(() => {
  gateway.platform.delay = waitForFile = () => Promise.resolve()
})
afterAll(async () => {
  await messaging.stop()
  await gateway.close()
})

/** What look-ups wait for until they are let go, and how many do. */
function createGate() {
  const { promise, resolve } = Promise.withResolvers<void>()
  const gate = {
    waiting: 0,
    open: resolve,
    pass: () => {
      gate.waiting++
      return promise
    },
  }
  return gate
}

/** A network may try so many unknown keys, and one more for each such time: a machine may be slow. */
const ofNetwork = 100
const oneMoreMs = 600

/** Keys that were tried since then are unknown, and those beyond what a network may try are too many. */
function expectBounded({ 401: tried = 0, 429: refused = 0 }: Record<string, number>, since: number, left = ofNetwork) {
  expect(tried + refused).toBe(many)
  expect(tried).toBeGreaterThanOrEqual(left)
  expect(tried).toBeLessThanOrEqual(ofNetwork + Math.ceil((performance.now() - since) / oneMoreMs))
}

const randomKey = () => `svc_live_${randomBytes(18).toString('base64url')}`
const randomIp = () => [203, 0, randomInt(256), randomInt(256)].join('.')

const always = (ip: string) => () => ip

/** Addresses of one network, another one each time. */
function ipsOfNetwork() {
  const group = () => randomInt(1, 0x10000).toString(16)
  const network = `2001:db8:${group()}:${group()}`
  return () => [network, group(), group(), group(), group()].join(':')
}

interface Asked {
  path: string
  key?: string
}

/** As many as one connection may ask for at once. */
const ofConnection = 8

/** Asks for all of it at once, in its order, over as few connections as that takes; answers how often each status came. */
async function flood(ipOf: () => string, asked: Asked[]) {
  const parts = Array.from({ length: Math.ceil(asked.length / ofConnection) }, (_, n) =>
    asked.slice(n * ofConnection, (n + 1) * ofConnection),
  )
  const connections = await Promise.all(parts.map(() => open()))
  for (const [n, part] of parts.entries()) connections[n]?.socket.write(headsOf(ipOf, part))
  const texts = await Promise.all(connections.map(({ said }) => said))
  const statuses: Record<string, number> = {}
  for (const [, status = ''] of texts.join('').matchAll(/HTTP\/1\.1 (\d{3}) /g))
    statuses[status] = (statuses[status] ?? 0) + 1
  return statuses
}

async function open() {
  const { hostname, port } = new URL(gateway.url)
  const socket = connect(Number(port), hostname)
  await once(socket, 'connect')
  return { socket, said: text(socket) }
}

/** One behind the other; the last one ends its connection. */
function headsOf(ipOf: () => string, asked: Asked[]) {
  const heads = asked.map(({ path, key }, n) => {
    const lines = [`GET ${path} HTTP/1.1`, 'Host: x', `X-Forwarded-For: ${ipOf()}`]
    if (key !== undefined) lines.push(`Authorization: Bearer ${key}`)
    if (n === asked.length - 1) lines.push('Connection: close')
    return `${lines.join('\r\n')}\r\n\r\n`
  })
  return heads.join('')
}

test('unknown keys of one network are looked up a few at a time, and nobody who has a key waits for them', async () => {
  const ipOf = ipsOfNetwork()
  const known = gateway.platform.issueKey().text
  const me = (key: string, from: string) => gateway.ask('/v1/me', { key, headers: { 'x-forwarded-for': from } })
  const wrong = randomKey()
  expect((await me(known, ipOf())).status).toBe(200)
  expect((await me(wrong, ipOf())).status).toBe(401)
  // What is known of them has grown old.
  await sleep(2_000)
  const gate = createGate()
  gateway.platform.delay = gate.pass
  const asked = Array.from({ length: many }, (_, n) => ({ path: '/v1/me', key: n === 0 ? wrong : randomKey() }))
  const began = performance.now()
  const flooded = flood(ipOf, asked)
  await expect.poll(() => gate.waiting).toBeGreaterThanOrEqual(ofOne)
  await sleep(200)
  gateway.platform.delay = () => Promise.resolve()
  expect(gate.waiting).toBe(ofOne)
  expect((await me(known, ipOf())).status).toBe(200)
  expect((await me(gateway.platform.issueKey().text, randomIp())).status).toBe(200)
  gate.open()
  expectBounded(await flooded, began, ofNetwork - 1)
})

test('a valid key behind many unknown ones of its network is answered in its turn', async () => {
  const asked = Array.from({ length: many }, () => ({ path: '/v1/me', key: randomKey() }))
  const { text: key } = gateway.platform.issueKey()
  const began = performance.now()
  const statuses = await flood(always(randomIp()), [...asked, { path: '/v1/me', key }])
  expect(statuses['200']).toBe(1)
  expectBounded(statuses, began)
})

test('addresses of files are looked up a few at a time for one network, and at once for another', async () => {
  const gate = createGate()
  waitForFile = gate.pass
  const flooded = flood(
    always(randomIp()),
    Array.from({ length: many }, () => ({ path: `/media/${randomBytes(24).toString('base64url')}` })),
  )
  await expect.poll(() => gate.waiting).toBeGreaterThanOrEqual(ofOne)
  await sleep(200)
  waitForFile = () => Promise.resolve()
  expect(gate.waiting).toBe(ofOne)
  expect(
    (
      await gateway.ask(`/media/${randomBytes(24).toString('base64url')}`, {
        headers: { 'x-forwarded-for': randomIp() },
      })
    ).status,
  ).toBe(404)
  gate.open()
  expect(await flooded).toEqual({ 404: many })
})

test('numbers that one organization asks for are looked up a few at a time, and at once for another', async () => {
  const [own, other] = [gateway.platform.issueKey(), gateway.platform.issueKey()]
  for (const { text } of [own, other]) expect((await gateway.ask('/v1/me', { key: text })).status).toBe(200)
  const gate = createGate()
  gateway.platform.delay = gate.pass
  const asked = Array.from({ length: many }, (_, n) => ({ path: `/v1/${1_000_000 + n}/messages`, key: own.text }))
  const flooded = flood(always(randomIp()), asked)
  await expect.poll(() => gate.waiting).toBeGreaterThanOrEqual(ofOne)
  await sleep(200)
  gateway.platform.delay = () => Promise.resolve()
  expect(gate.waiting).toBe(ofOne)
  expect((await gateway.ask('/v1/1000000/messages', { key: other.text })).status).toBe(404)
  gate.open()
  expect(await flooded).toEqual({ 404: many })
})
