import { connect } from 'node:net'
import { isRpc } from '@app/shared/api/contract.ts'
import { readCall } from '@app/shared/bus/call-header.ts'
import { beforeAll, describe, expect, test } from 'vitest'
import { contractModules } from './contracts.ts'
import type { TestGateway } from './testing/gateway.ts'
import { bodyOf, gatewayWithKey } from './testing/gateway-with-key.ts'

const both = gatewayWithKey()
const { say } = both
let gateway: TestGateway
let key: string
beforeAll(() => void ({ gateway, key } = both))

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
