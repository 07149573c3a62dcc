import { createHmac } from 'node:crypto'
import { acceptCallback } from '@app/shared/contracts/messaging.ts'
import { Problem } from '@app/shared/api/problem.ts'
import { serve } from '@app/shared/bus/rpc.ts'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { secrets, startTestGateway, type TestGateway } from './testing/gateway.ts'

let gateway: TestGateway
let accepted: Uint8Array[] = []
let accept = () => Promise.resolve({ accepted: true } as const)

beforeAll(async () => (gateway = await startTestGateway()))
beforeEach(() => {
  accepted = []
  accept = () => Promise.resolve({ accepted: true })
})
afterAll(() => gateway.close())

async function startMessaging() {
  const serving = await serve(
    { ...gateway.peer, name: 'messaging' },
    { acceptCallback },
    {
      acceptCallback: async (_app, { body }) => {
        accepted.push(body)
        return accept()
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

  test('stands in no API log', async () => {
    await gateway.app.apiLog.stop()
    expect(gateway.platform.apiCalls).toEqual([])
  })
})
