import { readCall } from '@app/shared/bus/call-header.ts'
import { isRpc } from '@app/shared/api/contract.ts'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { contractModules } from './contracts.ts'
import { mostDelayMs } from './http.ts'
import { startTestGateway, type TestGateway } from './testing/gateway.ts'
import { beLate } from './testing/late.ts'
import { countWarnings, logLines, mostLinesSince } from './testing/log-lines.ts'

let gateway: TestGateway
let key: string

beforeAll(async () => {
  gateway = await startTestGateway()
  const issued = gateway.platform.issueKey()
  key = issued.text
  gateway.platform.accounts.add(`${issued.organizationId}:123456`)
})
afterAll(() => gateway.close())

/** What a connection answers to bytes of HTTP. */
function say(bytes: string) {
  const { hostname, port } = new URL(gateway.url)
  const socket = connect(Number(port), hostname, () => socket.write(bytes))
  socket.on('error', () => {})
  return text(socket)
}

const bodyOf = (response: string) => JSON.parse(response.slice(response.indexOf('\r\n\r\n')))
const withoutId = (bytes: Buffer) => bytes.toString().replaceAll(/req_\w{26}/g, 'req_')

describe('what passes through', () => {
  test('a request reaches its service with path, query, body and caller', async () => {
    const answer = await gateway.ask('/v1/echoes/a%2Fb%20%C3%A9?q=1&q=2&unknown=3', { key, body: { a: ['ü'] } })
    const { data, request_id: requestId } = answer.json()
    expect(answer.status).toBe(201)
    expect(data.input).toEqual({ params: { name: 'a/b é' }, query: { q: ['1', '2'] }, body: { a: ['ü'] } })
    expect(data.caller).toMatchObject({ requestId, traceparent: expect.stringMatching(/^00-\w{32}-\w{16}-00$/) })
    expect(data.caller.idempotency).toBeUndefined()
    expect(answer.headers).toMatchObject({
      'content-type': 'application/json; charset=utf-8',
      'x-request-id': requestId,
      connection: 'keep-alive',
    })
  })

  test('an idle connection is kept for longer than load balancers keep theirs; one whose answer is not read ends in a minute', async () => {
    const { headers } = await gateway.ask('/v1/health')
    expect(headers['keep-alive']).toBe('timeout=75')
    expect(gateway.http.server.timeout).toBe(60_000)
  })

  test.each([
    ['/v1/echoes/a', 10_000],
    ['/v1/echoes/sync', 25_000],
  ])('%s has %d ms for its answer', async (path, waitMs) => {
    const before = performance.now()
    const { deadline } = (await gateway.ask(path, { key, body: {} })).json().data.caller
    expect(deadline).toBeGreaterThan(before + waitMs - 10)
    expect(deadline).toBeLessThan(performance.now() + waitMs)
  })

  test("the client's own trace goes on, a malformed one does not", async () => {
    const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
    const first = await gateway.ask('/v1/echoes/a', { key, body: {}, headers: { traceparent } })
    const second = await gateway.ask('/v1/echoes/a', { key, body: {}, headers: { traceparent: 'x\u00e9' } })
    expect(first.json().data.caller.traceparent).toBe(traceparent)
    expect(second.json().data.caller.traceparent).toMatch(/^00-\w{32}-\w{16}-00$/)
  })

  test.each([0, 1, 60_000, 70_000, 256 * 1024])('%d bytes go both ways unchanged', async (length) => {
    const body = Buffer.from(Array.from({ length }, (_, n) => n % 256))
    const answer = await gateway.ask('/v1/bytes?status=202', { key, body })
    expect(answer.status).toBe(202)
    expect(answer.bytes.equals(body)).toBe(true)
    expect(answer.headers['content-length']).toBe(String(length))
  })

  test('what a client has already is answered with 304, without a body and with what is left to spend', async () => {
    const first = await gateway.ask('/v1/tagged?text=a', { key })
    expect(first.headers['etag']).toMatch(/^W\/"/)
    const headers = { 'if-none-match': String(first.headers['etag']) }
    const second = await gateway.ask('/v1/tagged?text=a', { key, headers })
    expect([second.status, second.bytes.length]).toEqual([304, 0])
    expect(second.headers).toMatchObject({
      etag: first.headers['etag'],
      'x-request-id': expect.stringMatching(/^req_/),
      'x-ratelimit-limit': first.headers['x-ratelimit-limit'],
      ratelimit: expect.stringContaining('"read"'),
    })
    expect(second.headers['content-type']).toBeUndefined()
    const other = await gateway.ask('/v1/tagged?text=b', { key, headers })
    expect([other.status, other.json().data]).toEqual([200, { text: 'b' }])
    const refused = await gateway.ask('/v1/tagged?text=', { key, headers: { 'if-none-match': '*' } })
    expect([refused.status, refused.headers['etag']]).toEqual([400, undefined])
  })

  test('a stored answer is marked as replayed, and has the request id of now in its header', async () => {
    const body = { data: 1, request_id: 'req_of_then' }
    const answer = await gateway.ask('/v1/bytes?status=201&replayed=true', { key, body })
    expect(answer.status).toBe(201)
    expect(answer.json()).toEqual(body)
    expect(answer.headers).toMatchObject({
      'idempotent-replayed': 'true',
      'x-request-id': expect.stringMatching(/^req_\w{26}$/),
    })
  })

  test('where it is, and when to ask again, is said as the service says it', async () => {
    const answering = gateway.peer.nc.subscribe('rpc.directory.list-labels', {
      callback(_err, message) {
        message.headers?.set('Location', 'https://files.example/a')
        message.headers?.set('Retry-After', '7')
        message.respond('{}', message.headers && { headers: message.headers })
      },
    })
    const { headers } = await gateway.ask('/v1/labels', { key })
    answering.unsubscribe()
    expect(headers).toMatchObject({ location: 'https://files.example/a', 'retry-after': '7' })
  })

  test('a POST without a body needs no content type, and one that takes none ignores what is sent', async () => {
    expect((await gateway.ask('/v1/echoes/sync', { key, method: 'POST' })).status).toBe(200)
    expect((await gateway.ask('/v1/echoes/a', { key, method: 'POST' })).json().data.input.body).toEqual({})
    const answer = await gateway.ask('/v1/echoes/sync', { key, body: 'x', headers: { 'content-type': 'text/plain' } })
    expect(answer.status).toBe(200)
    const head = `POST /v1/echoes/a HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\nconnection: close\r\n`
    expect(await say(`${head}content-type: text/plain\r\ncontent-length: 0\r\n\r\n`)).toMatch(/^HTTP\/1.1 201/)
  })

  test("a service's own failure is answered as it came", async () => {
    const answer = await gateway.ask('/v1/echoes/a', { key, body: '{"a":' })
    expect(answer.status).toBe(400)
    expect(answer.json().error).toMatchObject({
      code: 'invalid_field_value',
      request_id: answer.headers['x-request-id'],
    })
  })
})

test('GET /me answers what the look-up of the key brought, in UTF-8', async () => {
  const answer = await gateway.ask('/v1/me', { key })
  expect(answer.json()).toMatchObject({
    data: { organization: { name: 'Acmé' }, rate_limits: { tier: 'standard', write_per_minute: 600 } },
    request_id: answer.headers['x-request-id'],
  })
  expect(answer.headers['content-length']).toBe(String(answer.bytes.length))
})

test('an endpoint that needs a feature is a 403 without it', async () => {
  const { text } = gateway.platform.issueKey({ features: ['messaging'] })
  const refused = await gateway.ask('/v1/webhook_subscriptions', { key: text, body: {} })
  expect([refused.status, refused.json().error.type, refused.json().error.code]).toEqual([
    403,
    'permission_error',
    'feature_not_entitled',
  ])
  expect((await gateway.ask('/v1/webhook_subscriptions', { key: text })).status).toBe(503)
})

test('with an idempotency key its service is asked for the answer of before, and told of the refusal', async () => {
  const { text: unentitled } = gateway.platform.issueKey({ features: ['messaging'] })
  const refusals: unknown[] = []
  const listening = gateway.peer.nc.subscribe('rpc.echo.echo-featured', {
    callback: (_err, { headers }) => void refusals.push(readCall(headers).refusal),
  })
  const headers = { 'idempotency-key': 'entitled once' }
  for (const asking of [{ key: unentitled }, { key: unentitled, headers }]) {
    const refused = await gateway.ask('/v1/featured', { ...asking, method: 'POST' })
    expect([refused.status, refused.json().error.code]).toEqual([403, 'feature_not_entitled'])
  }
  expect(gateway.passedOn).not.toContain('echoFeatured')
  expect((await gateway.ask('/v1/featured', { key, method: 'POST', headers })).status).toBe(200)
  expect(refusals).toEqual(['feature_not_entitled', undefined])
  listening.unsubscribe()
})

describe('paths', () => {
  test('a segment of 512 characters, each percent-encoded, arrives', async () => {
    const answer = await gateway.ask(`/v1/echoes/${'%61'.repeat(512)}`, { key, body: {} })
    expect(answer.json().data.input.params.name).toBe('a'.repeat(512))
  })

  test('a fixed segment wins over a parameter', async () => {
    const answer = await gateway.ask('/v1/echoes/sync', { key, method: 'POST' })
    expect(answer.json().data.input.params).toEqual({})
  })

  test.each([
    ['an unknown route', 'GET', '/v1/nothing/here'],
    ['another root', 'GET', '/'],
    ['a wrong method', 'PUT', '/v1/me'],
    ['a wrong method with a body', 'POST', '/v1/me'],
    ['a trailing slash', 'GET', '/v1/me/'],
    ['a malformed number', 'GET', '/v1/12345/messages'],
    ['a number of nobody', 'GET', '/v1/1234567/messages'],
    ['malformed percent-encoding', 'GET', '/v1/%zz/messages'],
    ['a percent-encoded U+0000', 'GET', '/v1/%00/messages'],
    ['a method that is not used', 'DELETE', '/v1/12345/messages'],
  ] as const)('%s is the same 404', async (_name, method, path) => {
    const answer = await gateway.ask(path, { key, method, ...(method === 'POST' && { body: 'x' }) })
    expect(answer.status).toBe(404)
    expect(withoutId(answer.bytes)).toBe(
      '{"error":{"type":"not_found","code":"resource_not_found","message":"No such resource: look at the method, the path and the ids.","request_id":"req_"}}',
    )
    expect(answer.headers['x-ratelimit-remaining']).toBeDefined()
  })

  test('a method that Fastify does not know is the same 404, also with a body of any kind', async () => {
    const head = `PROPFIND /v1/me HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\nconnection: close\r\n`
    const response = await say(`${head}content-type: text/xml\r\ncontent-length: 1\r\n\r\nx`)
    expect(bodyOf(response).error.code).toBe('resource_not_found')
    expect(response).toMatch(/^HTTP\/1.1 404 /)
    expect((await gateway.ask('/v1/me', { key, method: 'HEAD' })).status).toBe(404)
  })

  test('an unknown route without a key is a 401', async () => {
    for (const path of ['/v1/nothing', '/v1/%zz/messages', '/']) {
      const answer = await gateway.ask(path)
      expect([answer.status, answer.json().error.code]).toEqual([401, 'missing_api_key'])
    }
  })
})

test('slow clients of an organization, or strangers, hold no more than they leave to others, who find room beside two of them', async () => {
  const { hold, during } = gateway.app.inFlight
  const { organizationId, text: slow } = gateway.platform.issueKey()
  const half = 128 * 1024 * 1024
  const halved = () => [key, slow].map(async (one) => (await gateway.ask('/v1/bytes', { key: one, body: 'x' })).status)
  const forged = () =>
    gateway.ask('/upstream/callbacks', {
      body: 'x',
      headers: { 'x-hub-signature-256': 'sha256=', 'x-forwarded-for': '198.51.100.7' },
    })
  hold(organizationId, half)
  expect(() => hold(organizationId, 1)).toThrow('Too many')
  hold('another one', half / 2)
  expect(() => hold('another one', 1)).toThrow('Too many')
  expect(await Promise.all(halved())).toEqual([200, 503])
  expect((await forged()).status).toBe(401)
  hold(organizationId, -half)
  hold('another one', -half / 2)
  hold('strangers of 198.51.100.7', half / 4)
  expect(await Promise.all(halved())).toEqual([200, 200])
  const warn = vi.spyOn(gateway.app.log, 'warn')
  expect((await forged()).status).toBe(503)
  expect(warn).not.toHaveBeenCalled()
  warn.mockRestore()
  hold('strangers of 198.51.100.7', -half / 4)
  hold('strangers of 203.0.113.9', half / 4)
  expect((await forged()).status).toBe(401)
  hold('strangers of 203.0.113.9', -half / 4)
  const { promise, resolve } = Promise.withResolvers<void>()
  const run = (owner: string, count: number) => Array.from({ length: count }, () => during(owner, () => promise))
  const running = [...run(organizationId, 2_048), ...run('another one', 1_024)]
  expect(await Promise.all(halved())).toEqual([200, 503])
  await expect(during('another one', () => promise)).rejects.toThrow('Too many')
  resolve()
  await Promise.all(running)
  expect(await Promise.all(halved())).toEqual([200, 200])
})

test('answers that nobody reads count as held, until their client reads them or goes away', async () => {
  const { inFlight } = gateway.app
  const { organizationId, text: slow } = gateway.platform.issueKey()
  const size = 7_000_000
  const answering = gateway.peer.nc.subscribe('rpc.directory.list-labels', {
    callback: (_err, message) => void message.respond(Buffer.alloc(size, ' ')),
  })
  const { hostname, port } = new URL(gateway.url)
  const socket = connect(Number(port), hostname)
  onTestFinished(() => {
    socket.destroy()
    answering.unsubscribe()
  })
  socket.write(`GET /v1/labels HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${slow}\r\n\r\n`)
  await expect.poll(() => inFlight.bytes).toBe(size)
  const most = 128 * 1024 * 1024 - size
  inFlight.hold(organizationId, most)
  const [refused, beside] = await Promise.all([slow, key].map((one) => gateway.ask('/v1/labels', { key: one })))
  inFlight.hold(organizationId, -most)
  expect([refused?.status, beside?.status, beside?.bytes.length]).toEqual([503, 200, size])
  expect((await gateway.ask('/v1/labels', { key: slow })).status).toBe(200)
  expect(inFlight.bytes).toBe(size)
  socket.destroy()
  await expect.poll(() => inFlight.bytes).toBe(0)
})

test('what was done, and what is small, is answered however much its organization holds', async () => {
  const { hold } = gateway.app.inFlight
  const { organizationId, text: full } = gateway.platform.issueKey()
  const body = Buffer.alloc(20_000)
  const most = 128 * 1024 * 1024 - body.length
  hold(organizationId, most)
  expect((await gateway.ask('/v1/bytes', { key: full, body })).status).toBe(200)
  hold(organizationId, body.length)
  expect((await gateway.ask('/v1/tagged?text=a', { key: full })).status).toBe(200)
  hold(organizationId, -most - body.length)
  expect(gateway.app.inFlight.bytes).toBe(0)
})

test('a large answer that was read is given back once, also when its connection ends', async () => {
  const { text: own } = gateway.platform.issueKey()
  const answering = gateway.peer.nc.subscribe('rpc.directory.list-labels', {
    callback: (_err, message) => void message.respond(Buffer.alloc(100_000, ' ')),
  })
  const answer = say(`GET /v1/labels HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${own}\r\nconnection: close\r\n\r\n`)
  const [socket] = (await once(gateway.http.server, 'connection')) as [Socket]
  await once(socket, 'close')
  expect((await answer).length).toBeGreaterThan(100_000)
  answering.unsubscribe()
  expect(gateway.app.inFlight.bytes).toBe(0)
})

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

test('answers are counted by route and status', async () => {
  const { metrics } = gateway.app.probes
  const count = async () =>
    Number(
      /^svc_http_request_seconds_count\{.*route="\/v1\/me",status="401"\} (\d+)/m.exec(await metrics.metrics())?.[1] ??
        0,
    )
  const before = await count()
  await gateway.ask('/v1/me')
  expect(await count()).toBe(before + 1)
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
  const answer = await late()
  expect(answer.json().error).toMatchObject({ type: 'api_error', code: 'service_unavailable' })
  expect(answer.headers['retry-after']).toBe('1')
  expect((await strict.ask('/v1/health')).status).toBe(200)
  await Promise.all(Array.from({ length: 100 }, late))
  expect(countWarnings(lines)).toBeLessThanOrEqual(mostTold())
  await expect.poll(async () => (await late()).status, { timeout: 5_000 }).toBe(200)
})

test('every endpoint of every contract has its route', async () => {
  const ids: Record<string, string> = { phone_number_id: '123456' }
  const endpoints = Object.values(contractModules)
    .flatMap((module) => Object.values(module))
    .filter(isRpc)
    .flatMap(({ http, body }) => (http ? [{ ...http, takesBody: body.type !== 'undefined' }] : []))
  expect(endpoints.length).toBeGreaterThan(10)
  for (const { method, path, takesBody, takesFile } of endpoints) {
    const url = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => ids[name] ?? 'x')
    const answer = await gateway.ask(`/v1${url}`, { key, method, ...(takesBody && { body: {} }) })
    // Nobody serves it here, but for GET /me; JSON is no file.
    const expected = path === '/me' ? 200 : takesFile ? 415 : 503
    expect([path, answer.status]).toEqual([path, expected])
  }
})

test('health and the description need no key', async () => {
  const health = await gateway.ask('/v1/health')
  expect([health.status, health.json()]).toEqual([200, { status: 'ok', request_id: health.headers['x-request-id'] }])
  for (const path of ['/v1/health', '/v1/openapi.json']) {
    const head = await gateway.ask(path, { method: 'HEAD' })
    expect([path, head.status, head.bytes.length]).toEqual([path, 200, 0])
  }
  expect((await gateway.ask('/v1/openapi.json')).json()).toEqual({ openapi: '3.1.0' })
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

test('an answer whose client has gone by then counts as held no more', async () => {
  const { inFlight } = gateway.app
  const { id: keyId, text } = gateway.platform.issueKey()
  const asked = Promise.withResolvers<() => void>()
  const answering = gateway.peer.nc.subscribe('rpc.directory.list-labels', {
    callback: (_err, message) => asked.resolve(() => void message.respond(Buffer.alloc(100_000, ' '))),
  })
  onTestFinished(() => answering.unsubscribe())
  const { hostname, port } = new URL(gateway.url)
  const socket = connect(Number(port), hostname)
  socket.write(`GET /v1/labels HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${text}\r\n\r\n`)
  const respond = await asked.promise
  socket.destroy()
  // The gateway hears of it a moment later.
  await sleep(20)
  respond()
  await expect.poll(() => gateway.platform.apiCalls.some((call) => call.key_id === keyId)).toBe(true)
  await expect.poll(() => inFlight.bytes).toBe(0)
})

test('a client that goes away does not cancel what was passed on', async () => {
  const asked = gateway.passedOn.length
  const release = gateway.holdEchoes()
  const { hostname, port } = new URL(gateway.url)
  const socket = connect(Number(port), hostname)
  const head = `POST /v1/echoes/gone HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\n`
  socket.write(`${head}content-type: application/json\r\ncontent-length: 2\r\n\r\n{}`)
  await expect.poll(() => gateway.passedOn.length).toBe(asked + 1)
  socket.destroy()
  release()
  const find = () => gateway.platform.apiCalls.find(({ path }) => path === '/v1/echoes/gone')
  await expect.poll(find, { timeout: 2_000 }).toMatchObject({ status: '201' })
})
