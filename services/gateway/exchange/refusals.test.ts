import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { mostDelayMs } from '../http.ts'
import { startTestGateway, type TestGateway } from '../testing/gateway.ts'
import { bodyOf, gatewayWithKey } from '../testing/gateway-with-key.ts'
import { beLate } from '../testing/late.ts'
import { countWarnings, logLines, mostLinesSince } from '../testing/log-lines.ts'

const both = gatewayWithKey()
const { say } = both
let gateway: TestGateway
let key: string
beforeAll(() => void ({ gateway, key } = both))

describe('refusals wear the envelope', () => {
  test('a body over 256 KiB, declared or streamed, is a 413; then its connection goes on, or says that it ends', async () => {
    for (const length of [256 * 1024 + 1, 5_000_000, 20_000_000]) {
      const answer = await gateway.ask('/v1/bytes', { key, body: Buffer.alloc(length) })
      expect([answer.status, answer.json().error.code]).toEqual([413, 'payload_too_large'])
    }
    const head = `POST /v1/bytes HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\n`
    const chunk = `40000\r\n${'x'.repeat(0x40000)}\r\n`
    const next = `GET /v1/health HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`
    const response = await say(`${head}transfer-encoding: chunked\r\n\r\n${chunk}${chunk}0\r\n\r\n${next}`)
    expect(response).toMatch(/^HTTP\/1.1 413 ([^]*\r\nConnection: close\r\n[^]*payload_too_large|[^]*HTTP\/1.1 200 )/)
    expect(gateway.app.inFlight).toMatchObject({ bytes: 0, count: 0 })
  })

  test.each(['text/plain', 'application/x-www-form-urlencoded', 'application/jsonp', 'nonsense', ''])(
    'content type "%s" is a 415',
    async (type) => {
      const answer = await gateway.ask('/v1/bytes', { key, body: 'x', headers: { 'content-type': type } })
      expect([answer.status, answer.json().error.code]).toEqual([415, 'unsupported_media_type'])
    },
  )

  test.each([
    { 'content-type': 'Application/JSON' },
    { 'content-type': 'application/json; charset=utf-8' },
    { 'content-type': 'application/json ;charset=utf-8' },
    { 'content-encoding': 'Identity' },
  ])('%j is JSON as it is', async (headers) => {
    expect((await gateway.ask('/v1/bytes', { key, body: '{}', headers })).status).toBe(200)
  })

  test('a compressed body is a 415 that says so, and no broken JSON', async () => {
    const headers = { 'content-type': 'application/json', 'content-encoding': 'gzip' }
    const answer = await gateway.ask('/v1/bytes', { key, body: 'x', headers })
    expect([answer.status, answer.json().error]).toMatchObject([
      415,
      { code: 'unsupported_media_type', message: 'Send the body without a Content-Encoding.' },
    ])
  })

  test('a body in chunks without a type is none when it has no byte, as some proxies send it, and else a 415', async () => {
    const ask = (chunks: string) =>
      say(
        `POST /v1/bytes HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\nconnection: close\r\n` +
          `transfer-encoding: chunked\r\n\r\n${chunks}`,
      )
    expect(await ask('0\r\n\r\n')).toMatch(/^HTTP\/1.1 200 /)
    const response = await ask('2\r\n{}\r\n0\r\n\r\n')
    expect(response).toMatch(/^HTTP\/1.1 415 /)
    expect(bodyOf(response).error.code).toBe('unsupported_media_type')
  })

  test('a URL over 8 KiB is a 414, and a 401 without a key', async () => {
    const path = `/v1/me?${'x'.repeat(9_000)}`
    const answer = await gateway.ask(path, { key })
    expect([answer.status, answer.json().error.code]).toEqual([414, 'uri_too_long'])
    expect((await gateway.ask(path)).status).toBe(401)
    expect((await gateway.ask(`/v1/echoes/${'x'.repeat(9_000)}`, { key, body: {} })).status).toBe(414)
  })

  test('headers over 32 KiB are a 431', async () => {
    const response = await say(`GET /v1/me HTTP/1.1\r\nhost: x\r\nx-large: ${'x'.repeat(40_000)}\r\n\r\n`)
    expect(response).toMatch(/^HTTP\/1.1 431 [\s\S]*\r\nX-Request-Id: req_/)
    expect(bodyOf(response).error).toMatchObject({ code: 'headers_too_large', type: 'invalid_request_error' })
  })

  test('what is not HTTP is a 400', async () => {
    for (const bytes of ['nonsense\r\n\r\n', 'GET /v1/me HTTP/1.1\r\nhost: x\r\nx\x01y: 1\r\n\r\n']) {
      const response = await say(bytes)
      expect(response).toMatch(/^HTTP\/1.1 400 /)
      expect(bodyOf(response).error.code).toBe('invalid_field_value')
    }
  })

  test('what comes behind a whole request, and is none, is no answer to that', async () => {
    const head = `POST /v1/echoes/a HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\n`
    const response = await say(`${head}content-length: 2\r\n\r\n{} `)
    expect(response).toMatch(/^HTTP\/1.1 201 /)
    expect(response.match(/HTTP\/1.1/g)).toHaveLength(1)
  })

  test('what Node would refuse by itself is answered as anything else', async () => {
    for (const odd of [
      '',
      'host: x\r\nexpect: nonsense\r\n',
      'host: x\r\nupgrade: websocket\r\nconnection: upgrade, close\r\n',
    ]) {
      const response = await say(`GET /v1/me HTTP/1.1\r\n${odd}connection: close\r\n\r\n`)
      expect(response).toMatch(/^HTTP\/1.1 401 /)
      expect(bodyOf(response).error.code).toBe('missing_api_key')
    }
  })

  test('a body that ends early frees what was held', async () => {
    const head = `POST /v1/bytes HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\n`
    const { hostname, port } = new URL(gateway.url)
    const socket = connect(Number(port), hostname)
    socket.write(`${head}content-length: 100\r\n\r\nhalf`)
    await expect.poll(() => gateway.app.inFlight.bytes).toBe(4)
    socket.destroy()
    await expect.poll(() => gateway.app.inFlight.bytes).toBe(0)
  })

  test('nobody who serves an endpoint is a 503 at once', async () => {
    const startedAt = performance.now()
    const answer = await gateway.ask('/v1/nobody', { key })
    expect([answer.status, answer.json().error.code]).toEqual([503, 'service_unavailable'])
    expect(answer.headers['retry-after']).toBe('1')
    expect(performance.now() - startedAt).toBeLessThan(2_000)
  })

  test('too many requests in work are a 503', async () => {
    gateway.app.inFlight.count += 4_096
    const answer = await gateway.ask('/v1/accounts', { key })
    gateway.app.inFlight.count -= 4_096
    expect([answer.status, answer.headers['retry-after']]).toEqual([503, '1'])
    expect((await gateway.ask('/v1/me', { key })).status).toBe(200)
  })
})

test('what one connection asks ahead of its answers is bounded, and the last answer says that it ends', async () => {
  const said = await say('GET / HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(400))
  expect(said.match(/HTTP\/1.1 401/g)).toHaveLength(8)
  expect(said.match(/Connection: close/g)).toHaveLength(1)
})

test('when the event loop is late requests are turned away for a second, and the liveness is not; however many they are, they fill no log', async () => {
  const strict = await startTestGateway({ maxEventLoopDelay: mostDelayMs })
  onTestFinished(() => strict.close())
  onTestFinished(() => void vi.restoreAllMocks())
  const { text: own } = strict.platform.issueKey()
  const lines = logLines(strict.app)
  const mostTold = mostLinesSince()
  await beLate()
  const late = () => strict.ask('/v1/me', { key: own })
  await expect.poll(async () => (await late()).status, { interval: 5 }).toBe(503)
  expect(lines).toContainEqual(expect.objectContaining({ route: '/v1/me', cause: 'the event loop is late' }))
  for (const answer of [await late(), await strict.ask('/media/some'), await strict.ask('/upstream/callbacks')]) {
    expect(answer.json().error).toMatchObject({ type: 'api_error', code: 'service_unavailable' })
    expect(answer.headers['retry-after']).toBe('1')
  }
  expect((await strict.ask('/v1/health')).status).toBe(200)
  await Promise.all(Array.from({ length: 100 }, late))
  expect(countWarnings(lines)).toBeLessThanOrEqual(mostTold())
  await expect.poll(async () => (await late()).status, { timeout: 5_000 }).toBe(200)
})

/** A request whose last byte has not come yet; answers what `finish` brings. */
function askSlowly(apiKey: string, path: string, header = '') {
  const { hostname, port } = new URL(gateway.url)
  const socket = connect(Number(port), hostname)
  onTestFinished(() => void socket.destroy())
  let answer = ''
  socket.on('data', (chunk: Buffer) => (answer += chunk.toString()))
  const head = `POST ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${apiKey}\r\n${header}`
  socket.write(`${head}content-type: application/json\r\ncontent-length: 2\r\n\r\n{`)
  return { finish: () => socket.write('}'), answer: () => answer }
}

test('a key that is revoked while the body of its request comes is refused, and nothing is passed on', async () => {
  const issued = gateway.platform.issueKey()
  const asked = gateway.passedOn.length
  const { finish, answer } = askSlowly(issued.text, '/v1/echoes/slow')
  await expect.poll(() => gateway.app.inFlight.bytes).toBe(1)
  issued.state = 'revoked'
  // As long as what is known of a key counts.
  await sleep(2_000)
  finish()
  await expect.poll(answer).toContain('revoked_api_key')
  expect(gateway.passedOn).toHaveLength(asked)
})

test('a feature that is taken away while the body of a request comes is missing to it, also to one with a key of its own', async () => {
  const issued = gateway.platform.issueKey()
  const asked = gateway.passedOn.length
  const requests = ['', 'idempotency-key: slow\r\n'].map((header) => askSlowly(issued.text, '/v1/featured', header))
  await expect.poll(() => gateway.app.inFlight.bytes).toBe(2)
  issued.features = ['messaging']
  // As long as what is known of a key counts.
  await sleep(2_000)
  for (const { finish } of requests) finish()
  for (const { answer } of requests) await expect.poll(answer).toContain('feature_not_entitled')
  expect(gateway.passedOn).toHaveLength(asked)
})
