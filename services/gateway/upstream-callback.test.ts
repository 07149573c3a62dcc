import { createHmac } from 'node:crypto'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { acceptCallbacks } from '@app/shared/contracts/messaging.ts'
import { Problem } from '@app/shared/api/problem.ts'
import { serve } from '@app/shared/bus/rpc.ts'
import { unpack } from '@app/shared/values/packed.ts'
import { until } from '@app/test/until.ts'
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { secrets, startTestGateway, type TestGateway } from './testing/gateway.ts'
import { countWarnings, logLines, mostLinesSince } from './testing/log-lines.ts'

let gateway: TestGateway
let accepted: Uint8Array[] = []
let questions = 0
/** Of the last question. */
let trace = ''
let accept = (_body: Uint8Array) => Promise.resolve(true)

beforeAll(async () => (gateway = await startTestGateway()))
beforeEach(() => {
  accepted = []
  questions = 0
  accept = () => Promise.resolve(true)
})
afterAll(() => gateway.close())

async function startMessaging() {
  const serving = await serve(
    { ...gateway.peer, name: 'messaging' },
    { acceptCallbacks },
    {
      acceptCallbacks: async (_app, { body }, { traceparent }) => {
        const bodies = unpack(body)
        questions++
        trace = traceparent
        accepted.push(...bodies)
        return { accepted: await Promise.all(bodies.map(accept)) }
      },
    },
  )
  // Heard by the server before the first question, which comes by another connection.
  await gateway.peer.nc.flush()
  return serving
}

const sign = (body: string | Buffer, secret = secrets.appSecret) =>
  `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`

const post = (body: string | Buffer, signature: string | undefined, type = 'application/json') =>
  gateway.ask('/upstream/callbacks', {
    body,
    headers: { 'content-type': type, ...(signature !== undefined && { 'x-hub-signature-256': signature }) },
  })

describe('the handshake', () => {
  const ask = (query: string) => gateway.ask(`/upstream/callbacks?${query}`)

  test('answers the challenge in plain text', async () => {
    const answer = await ask(`hub.mode=subscribe&hub.challenge=158201&hub.verify_token=${secrets.verifyToken}`)
    expect([answer.status, answer.bytes.toString()]).toEqual([200, '158201'])
    expect(answer.headers).toMatchObject({
      'content-type': 'text/plain; charset=utf-8',
      'x-content-type-options': 'nosniff',
    })
  })

  test.each([
    'hub.mode=subscribe&hub.challenge=1&hub.verify_token=wrong',
    'hub.mode=subscribe&hub.challenge=1',
    `hub.mode=unsubscribe&hub.challenge=1&hub.verify_token=${secrets.verifyToken}`,
    `hub.mode=subscribe&hub.verify_token=${secrets.verifyToken}`,
    `hub.mode=subscribe&hub.challenge=1&hub.verify_token=${secrets.verifyToken}&hub.verify_token=x`,
    '',
  ])('refuses %s', async (query) => {
    const answer = await ask(query)
    expect([answer.status, answer.bytes.toString()]).toEqual([403, 'forbidden'])
  })
})

describe('a callback', () => {
  test('while nobody stores it is a 503 with Retry-After', async () => {
    const answer = await post('{}', sign('{}'))
    expect([answer.status, answer.headers['retry-after']]).toEqual([503, '1'])
  })

  test('is stored as the bytes that came, then answered 200', async () => {
    const messaging = await startMessaging()
    const body = Buffer.from('{"a": "\\u0000", "b":\xff }', 'latin1')
    for (const type of ['application/json', 'text/plain', '']) {
      const answer = await post(body, sign(body), type)
      expect([answer.status, answer.bytes.toString()]).toEqual([200, 'ok'])
    }
    expect(accepted.map((bytes) => Buffer.from(bytes).equals(body))).toEqual([true, true, true])
    await messaging.stop()
  })

  test('with a missing, wrong or malformed signature is a 401 and goes nowhere', async () => {
    const messaging = await startMessaging()
    const upper = sign('{}').toUpperCase()
    for (const signature of [undefined, '', 'sha256=', sign('{} '), sign('{}', 'other'), sign('{}').slice(7), upper]) {
      expect((await post('{}', signature)).status).toBe(401)
    }
    expect(accepted).toEqual([])
    await messaging.stop()
  })

  test('of 4 MiB passes, a larger one is a 413', async () => {
    const messaging = await startMessaging()
    const body = Buffer.alloc(4 * 1024 * 1024, 'x')
    expect((await post(body, sign(body))).status).toBe(200)
    expect(accepted[0]?.length).toBe(body.length)
    const larger = Buffer.alloc(4 * 1024 * 1024 + 1, 'x')
    expect((await post(larger, sign(larger))).status).toBe(413)
    expect(gateway.app.inFlight).toMatchObject({ bytes: 0, count: 0 })
    await messaging.stop()
  })

  test('that could not be stored is a 503', async () => {
    accept = () => Promise.reject(new Problem('internal_error'))
    const messaging = await startMessaging()
    expect((await post('{}', sign('{}'))).status).toBe(503)
    await messaging.stop()
  })

  test('that could not be stored, with however many others, fills no log', async () => {
    onTestFinished(() => void vi.restoreAllMocks())
    const lines = logLines(gateway.app)
    const mostTold = mostLinesSince()
    const answers = await Promise.all(Array.from({ length: 100 }, () => post('{}', sign('{}'))))
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([503]))
    // With those of the tests before.
    await expect.poll(() => countWarnings(lines)).toBeGreaterThan(0)
    expect(countWarnings(lines)).toBeLessThanOrEqual(mostTold())
  })

  test('beyond as many requests as may be in work is a 503, and nobody is asked', async () => {
    const messaging = await startMessaging()
    gateway.app.inFlight.count += 4_096
    const { status } = await post('{}', sign('{}'))
    gateway.app.inFlight.count -= 4_096
    expect([status, questions]).toEqual([503, 0])
    await messaging.stop()
  })

  test('is stored in the trace of its request', async () => {
    const messaging = await startMessaging()
    const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
    await gateway.ask('/upstream/callbacks', {
      body: '{}',
      headers: { 'x-hub-signature-256': sign('{}'), traceparent },
    })
    expect(trace).toBe(traceparent)
    await messaging.stop()
  })

  test('goes with those that come at the same time, and is answered for itself', async () => {
    const messaging = await startMessaging()
    const [kept, lost, last] = ['{"n":1}', '{"n":2}', '{"n":3}']
    accept = (body) => Promise.resolve(Buffer.from(body).toString() !== lost)
    const socket = connect(Number(new URL(gateway.url).port), '127.0.0.1')
    onTestFinished(() => void socket.destroy())
    const requestOf = (body: string, more = '') =>
      `POST /upstream/callbacks HTTP/1.1\r\nhost: x\r\nx-hub-signature-256: ${sign(body)}\r\n${more}content-length: ${body.length}\r\n\r\n${body}`
    socket.write(requestOf(kept) + requestOf(lost) + requestOf(last, 'connection: close\r\n'))
    expect((await text(socket)).match(/(?<=HTTP\/1.1 )\d+/g)).toEqual(['200', '503', '200'])
    expect([questions, accepted.map((body) => Buffer.from(body).toString())]).toEqual([1, [kept, lost, last]])
    await messaging.stop()
  })

  test('does not wait for an answer to those before it', async () => {
    const messaging = await startMessaging()
    const slow = Promise.withResolvers<boolean>()
    accept = (body) => (body.length === 2 ? slow.promise : Promise.resolve(true))
    const first: ReturnType<typeof post>[] = []
    for (const count of [1, 2, 3]) {
      first.push(post('{}', sign('{}')))
      await until(() => expect(questions).toBe(count))
    }
    expect((await post('{"n":1}', sign('{"n":1}'))).status).toBe(200)
    slow.resolve(true)
    expect((await Promise.all(first)).map(({ status }) => status)).toEqual([200, 200, 200])
    await messaging.stop()
  })

  test('stands in no API log', async () => {
    await gateway.app.apiLog.stop()
    expect(gateway.platform.apiCalls).toEqual([])
  })
})

describe('a callback, while strangers of however many networks hold all that they may', () => {
  const mebibytes = 1024 * 1024
  const strangers = Array.from({ length: 64 }, (_, n) => `strangers of 203.0.113.${n}`)
  const from = async (network: string) => {
    const headers = { 'x-hub-signature-256': sign('{}'), 'x-forwarded-for': network }
    return (await gateway.ask('/upstream/callbacks', { body: '{}', headers })).status
  }
  const withKey = async (key: string) => (await gateway.ask('/v1/bytes', { key, body: 'x' })).status

  test('is kept if the platform has signed one from its network, and whoever has a key is answered', async () => {
    const messaging = await startMessaging()
    const { text: key } = gateway.platform.issueKey()
    const { hold } = gateway.app.inFlight
    expect(await from('198.51.100.1')).toBe(200)
    const holding = strangers.filter((owner) => {
      try {
        hold(owner, 4 * mebibytes)
        return true
      } catch {
        return false
      }
    })
    const statuses = [await withKey(key), await from('198.51.100.1'), await from('198.51.100.2')]
    for (const owner of holding) hold(owner, -4 * mebibytes)
    expect([holding.length, statuses]).toEqual([16, [200, 200, 503]])
    expect([await from('198.51.100.2'), gateway.app.inFlight.bytes]).toEqual([200, 0])
    await messaging.stop()
  })

  test('takes none of the room of their requests', async () => {
    const messaging = await startMessaging()
    const { text: key } = gateway.platform.issueKey()
    const { promise, resolve } = Promise.withResolvers<void>()
    const running = Promise.allSettled(
      strangers.flatMap((owner) => Array.from({ length: 64 }, () => gateway.app.inFlight.during(owner, () => promise))),
    )
    const count = gateway.app.inFlight.count
    const statuses = [await withKey(key), await from('198.51.100.3')]
    resolve()
    await running
    expect([count, statuses, gateway.app.inFlight.count]).toEqual([1_024, [200, 200], 0])
    await messaging.stop()
  })
})
