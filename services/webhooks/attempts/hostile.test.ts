import { createSecretKey } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, createServer as createTcpServer, type Server } from 'node:net'
import { gzipSync } from 'node:zlib'
import { createEgress } from '@app/shared/outside/egress.ts'
import { toProblem } from '@app/shared/api/problem.ts'
import { systemCaller } from '@app/shared/bus/ask.ts'
import { newId } from '@app/shared/values/ids.ts'
import { until } from '@app/test/until.ts'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createWebhookSubscription } from '../subscriptions/create-webhook-subscription.ts'
import { type TestWebhooks, testWebhooks } from '../testing/app.ts'
import { newAttempt } from '../testing/new-attempt.ts'
import { answer, type Receiver, startReceiver } from '../testing/receiver.ts'
import { startAttempts } from './attempts.ts'
import { makeAttempt } from './make-attempt.ts'

let webhooks: TestWebhooks
const open: { close: () => unknown }[] = []

beforeAll(async () => {
  webhooks = await testWebhooks()
})
afterAll(() => webhooks.close())
beforeEach(() => webhooks.clear())
afterEach(async () => {
  await Promise.all(open.splice(0).map((server) => server.close()))
})

async function receiverOf(): Promise<Receiver> {
  const receiver = await startReceiver()
  open.push(receiver)
  return receiver
}

async function portOf(server: Server, host = '127.0.0.1', port = 0) {
  open.push(server)
  await new Promise<void>((resolve) => server.listen(port, host, resolve))
  return (server.address() as AddressInfo).port
}

const idsOf = ({ got }: Receiver) => got.map(({ headers }) => headers['x-svc-event-id'])

/** How the only delivery to this URL stands, when its first attempt is over. */
async function afterFirst(url: string) {
  const { id } = await webhooks.subscribe({ url })
  await webhooks.emit({})
  return until(async () => {
    const [delivery] = await webhooks.deliveries({ subscription_id: id })
    if (!delivery || delivery.status === 'pending') throw new Error('not yet')
    return delivery
  })
}

const means = { keysOf: () => [createSecretKey('whsec_test', 'utf8')], mayBegin: () => true }

const attemptAt = (url: string) => newAttempt({ url, organizationId: webhooks.organizationId })

test('fifty healthy endpoints do not notice one that hangs', async () => {
  const hanging = await receiverOf()
  hanging.respondWith(() => {})
  await webhooks.subscribe({ url: hanging.url })
  const healthy = await Promise.all(Array.from({ length: 50 }, receiverOf))
  for (const { url } of healthy) await webhooks.subscribe({ url })
  const first = await webhooks.emit({}, {})
  await until(() => healthy.forEach((receiver) => expect(receiver.got).toHaveLength(2)))
  const second = await webhooks.emit(...Array.from({ length: 5 }, () => ({})))
  const at = performance.now()
  await until(() => healthy.forEach((receiver) => expect(receiver.got).toHaveLength(7)))
  expect(performance.now() - at).toBeLessThan(5_000)
  for (const receiver of healthy) expect(new Set(idsOf(receiver))).toEqual(new Set([...first, ...second]))
  expect(hanging.got.length).toBeLessThanOrEqual(10)
})

test('a hundred endpoints that begin to hang at the same moment leave slots to others', async () => {
  const hanging = await receiverOf()
  hanging.respondWith(() => {})
  const healthy = await receiverOf()
  for (let n = 0; n < 110; n++) await webhooks.subscribe({ url: `${hanging.url}/${n}` })
  await webhooks.subscribe({ url: healthy.url, events: ['contact.created'] })
  await webhooks.emit(...Array.from({ length: 10 }, () => ({})))
  await until(() => expect(hanging.got.length).toBeGreaterThan(300))
  const at = performance.now()
  const events = await webhooks.emit(...Array.from({ length: 20 }, () => ({ type: 'contact.created' })))
  await until(() => expect(new Set(idsOf(healthy))).toEqual(new Set(events)))
  expect(performance.now() - at).toBeLessThan(5_000)
  expect(hanging.got.length).toBeLessThan(700)
})

test('endpoints of six hundred organizations that begin to hang at the same moment hold up nobody until they time out', async () => {
  const hanging = await receiverOf()
  hanging.respondWith(() => {})
  const healthy = await receiverOf()
  await webhooks.subscribe({ url: healthy.url })
  const others = Array.from({ length: 600 }, () => newId('org'))
  for (const id of others) await webhooks.subscribe({ url: `${hanging.url}/${id}` }, systemCaller(id))
  await webhooks.emit(...[...others, ...others].map((organizationId) => ({ organizationId })))
  // All slots, which are for two calls at most of each since the first of them are silent.
  await until(() => expect(hanging.got.length).toBeGreaterThanOrEqual(900))
  const at = performance.now()
  const events = await webhooks.emit(...Array.from({ length: 20 }, () => ({})))
  await until(() => expect(new Set(idsOf(healthy))).toEqual(new Set(events)))
  expect(performance.now() - at).toBeLessThan(8_000)
})

test('endpoints that are down and come back lose nothing', async () => {
  const ports = await Promise.all(
    Array.from({ length: 10 }, async () => {
      const closed = createTcpServer()
      const port = await portOf(closed)
      await new Promise((resolve) => closed.close(resolve))
      return port
    }),
  )
  for (const port of ports) await webhooks.subscribe({ url: `http://127.0.0.1:${port}/` })
  const events = await webhooks.emit(...Array.from({ length: 12 }, () => ({})))
  await until(async () => {
    const [row] = await webhooks.sql`select count(*)::int from due_deliveries where tried and begun_at is null`
    expect(Number(row?.['count'])).toBeGreaterThan(40)
  })
  const got = new Map<number, Set<unknown>>(ports.map((port) => [port, new Set()]))
  for (const port of ports) {
    const server = createServer((request, response) => {
      got.get(port)?.add(request.headers['x-svc-event-id'])
      request.resume().on('end', () => response.end())
    })
    await portOf(server, '127.0.0.1', port)
  }
  await until(async () => {
    await webhooks.hurry()
    for (const ids of got.values()) expect(ids).toEqual(new Set(events))
  })
  await until(async () => expect(await webhooks.sql`select id from due_deliveries`).toHaveLength(0))
})

test('a worker that dies in its calls loses nothing, and what is repeated has the same event id', async () => {
  const receiver = await receiverOf()
  const held: (() => void)[] = []
  receiver.respondWith((response) => void held.push(() => response.end()))
  await webhooks.subscribe({ url: receiver.url })
  const events = await webhooks.emit(...Array.from({ length: 30 }, () => ({})))
  // Ten at most: fewer, where the first of them has been silent for a second when the last one comes.
  await until(() => expect(held.length).toBeGreaterThan(1))
  // What another instance finds when this one is gone: a lane whose lease has lapsed, and attempts begun long ago.
  await webhooks.sql`update lanes set held_until = '-infinity', due_at = now()`
  await webhooks.sql`update due_deliveries set begun_at = begun_at - interval '1 minute' where begun_at is not null`
  receiver.respondWith(answer(200))
  const heir = startAttempts(webhooks)
  await until(() => expect(new Set(idsOf(receiver))).toEqual(new Set(events)))
  held.forEach((release) => release())
  await until(async () => expect(await webhooks.deliveries({ status: 'succeeded' })).toHaveLength(30))
  await heir.stop()
  const repeated = receiver.got.length - 30
  expect(repeated).toBeLessThanOrEqual(10)
  const attempts = receiver.got.map(({ headers }) => [headers['x-svc-event-id'], headers['x-svc-attempt']].join(' '))
  expect(new Set(attempts).size).toBe(attempts.length)
})

describe('an answer that is meant to harm is bounded', () => {
  test('a body of a gigabyte', async () => {
    let sent = 0
    const chunk = Buffer.alloc(64 * 1024, 'x')
    const server = createServer((_, response) => {
      response.writeHead(200, { 'content-length': String(1024 ** 3) })
      const more = () => {
        while (!response.destroyed && response.write(chunk)) sent += chunk.length
        if (!response.destroyed) response.once('drain', more)
      }
      more()
    })
    const delivery = await afterFirst(`http://127.0.0.1:${await portOf(server)}/`)
    expect(delivery).toMatchObject({ status: 'succeeded', response_body_snippet: 'x'.repeat(4_096) })
    expect(sent).toBeLessThan(64 * 1024 * 1024)
  })

  test('a gzip bomb, which is not unpacked', async () => {
    const bomb = gzipSync(Buffer.alloc(50_000_000))
    const server = createServer((_, response) =>
      response.writeHead(500, { 'content-encoding': 'gzip', 'content-length': String(bomb.length) }).end(bomb),
    )
    const delivery = await afterFirst(`http://127.0.0.1:${await portOf(server)}/`)
    expect(delivery).toMatchObject({ status: 'failed', response_status: 500 })
    expect(delivery.response_body_snippet?.length).toBeLessThanOrEqual(4_096)
  })

  test('an expired certificate', async () => {
    const pem = readFileSync(new URL('../../../test/expired-certificate.pem', import.meta.url))
    const server = createTlsServer({ key: pem, cert: pem }, (_, response) => response.end())
    const delivery = await afterFirst(`https://127.0.0.1:${await portOf(server)}/`)
    expect(delivery).toMatchObject({ status: 'failed', error_code: 'tls_error', response_status: null })
    expect(delivery.error_message).toBe('The TLS handshake failed (CERT_HAS_EXPIRED).')
  })

  test('a redirect to an address inside', async () => {
    const inside = await receiverOf()
    const receiver = await receiverOf()
    receiver.respondWith(answer(307, { location: inside.url }))
    expect(await afterFirst(receiver.url)).toMatchObject({
      status: 'failed',
      error_code: 'redirect_not_followed',
      response_status: 307,
    })
    expect(inside.got).toEqual([])
  })

  test('one byte at a time, without an end: the time for an attempt, and the 2xx counts; silence is a timeout', async () => {
    const silent = createTcpServer(() => {})
    const server = createServer((_, response) => {
      response.writeHead(200)
      const timer = setInterval(() => response.write('a'), 50)
      response.on('close', () => clearInterval(timer))
    })
    const [dripping, silence] = await Promise.all(
      [server, silent].map(async (one) => {
        const attempt = attemptAt(`http://127.0.0.1:${await portOf(one)}/`)
        return makeAttempt(webhooks, attempt, { ...means, timeoutMs: 500 })
      }),
    )
    expect(dripping).toMatchObject({
      kind: 'succeeded',
      attempt: { status: 200, snippet: expect.stringMatching(/^a+$/) },
    })
    expect(dripping?.attempt.durationMs).toBeLessThan(2_000)
    expect(silence).toMatchObject({ kind: 'failed', attempt: { status: null, error: { code: 'timeout' } } })
  })
})

describe('without networks that are allowed', () => {
  const egress = createEgress({ allowCidrs: '', resolve: async (name) => addresses[name] ?? [] })
  const addresses: Record<string, string[]> = {
    'inside.example.com': ['127.0.0.1'],
    'mixed.example.com': ['93.184.216.34', '127.0.0.1'],
    'mapped.example.com': ['::ffff:127.0.0.1'],
  }
  let connections = 0
  let port = 0
  beforeAll(async () => {
    for (const host of ['127.0.0.1', '::1']) {
      const canary = createTcpServer((socket) => {
        connections++
        socket.destroy()
      })
      await new Promise<void>((resolve) => canary.listen(port, host, resolve))
      port = (canary.address() as AddressInfo).port
      canary.unref()
    }
  })

  test.each([
    '127.0.0.1',
    '2130706433',
    '0x7f000001',
    '0177.0.0.1',
    '127.1',
    '１２７.0.0.1',
    '0.0.0.0',
    '[::1]',
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
    '[64:ff9b::127.0.0.1]',
    'localhost',
    'a.localhost',
    'database',
    'vault.internal',
    'inside.example.com',
    'mixed.example.com',
    'mapped.example.com',
  ])('%s is refused when it is given, and never connected to', async (host) => {
    for (const scheme of ['http', 'https']) {
      const url = `${scheme}://${host}:${port}/hook`
      const body = { url, events: ['message.received' as const] }
      const created = createWebhookSubscription(
        { ...webhooks, egress },
        { params: {}, query: {}, body },
        webhooks.caller,
      )
      expect(await created.then(() => null, toProblem)).toMatchObject({ failure: 'invalid_field_value', param: 'url' })
      const made = await makeAttempt({ ...webhooks, egress }, attemptAt(url), means)
      expect(made?.attempt).toMatchObject({ status: null, snippet: null, error: { code: 'blocked_address' } })
    }
    expect(connections).toBe(0)
    expect(await webhooks.sql`select id from subscriptions`).toEqual([])
  })
})
