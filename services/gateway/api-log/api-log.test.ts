import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { Problem } from '@app/shared/api/problem.ts'
import { newId } from '@app/shared/values/ids.ts'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { startTestGateway, type TestGateway } from '../testing/gateway.ts'
import { logLines } from '../testing/log-lines.ts'
import { startTestPlatform } from '../testing/platform.ts'

let gateway: TestGateway
beforeEach(async () => (gateway = await startTestGateway()))
afterEach(() => gateway.close())

const logged = (count: number, { platform } = gateway) =>
  expect.poll(() => platform.apiCalls.length, { timeout: 5_000 }).toBe(count)

test('every call is kept: whose, what, when, how long, from where; never its query', async () => {
  const startedAt = Date.now()
  const key = gateway.platform.issueKey()
  const answers = [
    await gateway.ask('/v1/me?secret=1', { key: key.text }),
    await gateway.ask('/v1/me'),
    await gateway.ask('/v1/nothing', { key: key.text, method: 'DELETE' }),
    await gateway.ask('/v1/health'),
    await gateway.ask('/v10/elsewhere'),
    await gateway.ask(`/v1/${'x'.repeat(3_000)}`, { key: key.text }),
  ]
  await logged(answers.length - 1)
  const [me, unknown, nothing, health, long] = gateway.platform.apiCalls
  expect(me).toEqual({
    at: expect.stringMatching(/Z$/),
    organization_id: key.organizationId,
    key_id: key.id,
    request_id: answers[0]?.headers['x-request-id'],
    method: 'GET',
    path: '/v1/me',
    status: '200',
    took_us: expect.toSatisfy((us) => Number.isInteger(us) && us > 0),
    ip: expect.stringMatching(/^10\./),
    problem: '',
  })
  expect(Date.parse(me?.at ?? '')).toBeGreaterThanOrEqual(startedAt - 1)
  expect(Date.parse(me?.at ?? '')).toBeLessThanOrEqual(Date.now())
  expect(unknown).toMatchObject({
    organization_id: null,
    key_id: null,
    status: '401',
    path: '/v1/me',
    problem: 'missing_api_key',
  })
  expect(nothing).toMatchObject({
    key_id: key.id,
    method: 'DELETE',
    path: '/v1/nothing',
    status: '404',
    problem: 'resource_not_found path',
  })
  expect(health).toMatchObject({ path: '/v1/health', status: '200' })
  expect(long?.path).toHaveLength(1_024)
})

test('a call is kept however its target was written, as a path and nothing more', async () => {
  const { text: key } = gateway.platform.issueKey()
  const { hostname, port } = new URL(gateway.url)
  function say(target: string) {
    const socket = connect(Number(port), hostname)
    socket.write(`GET ${target} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\nconnection: close\r\n\r\n`)
    return text(socket)
  }
  const long = `/v1/${'x'.repeat(1_100)}`
  const targets = ['/%76%31/me', 'http://user:secret@example.com/v1/me?secret=1', '/v1/me#secret', `${long}?secret=1`]
  for (const target of targets) await say(target)
  await logged(targets.length)
  expect(gateway.platform.apiCalls.map(({ path, status }) => [path, status])).toEqual([
    ['/%76%31/me', '200'],
    ['/v1/me', '200'],
    ['/v1/me', '200'],
    [long.slice(0, 1_024), '404'],
  ])
})

test('a path that is no endpoint’s, and an id that is not there, are answered alike and kept apart', async () => {
  const { text: key } = gateway.platform.issueKey()
  const answers = []
  for (const path of ['/v1/message', '/v1/123456/messages', '/v1/me/%zz', '/v1/123456/messages/?limit=1', '/v1'])
    answers.push(await gateway.ask(path, { key }))
  const bodies = answers.map((one) => ({ ...one.json().error, request_id: '' }))
  expect(bodies[0]).toMatchObject({ code: 'resource_not_found' })
  for (const body of bodies) expect(body).toEqual(bodies[0])
  await logged(answers.length)
  expect(gateway.platform.apiCalls.map(({ problem }) => problem)).toEqual([
    'resource_not_found path',
    'resource_not_found id',
    'resource_not_found path',
    'resource_not_found path',
    'resource_not_found path',
  ])
})

test('a field name that is cut in the middle of a character holds up no batch', async () => {
  const { text: key } = gateway.platform.issueKey()
  const name = `${'a'.repeat(200 - 'invalid_field_value '.length - 1)}😀`
  const { status } = await gateway.ask('/v1/echoes/1', { key, body: `{"${name}":1e400}` })
  expect(status).toBe(400)
  await logged(1)
  expect(gateway.platform.apiCalls[0]?.problem).toMatch(/^invalid_field_value a{179}\uFFFD$/)
})

test('what a client names a field breaks no line, and takes no more room than others', async () => {
  const { text: key } = gateway.platform.issueKey()
  const names = ['a\\nb\\u0085c', ' ', 'x'.repeat(500)]
  for (const name of names)
    expect((await gateway.ask('/v1/echoes/1', { key, body: `{"${name}":1e400}` })).status).toBe(400)
  await logged(names.length)
  expect(gateway.platform.apiCalls.map(({ problem }) => problem)).toEqual([
    'invalid_field_value abc',
    'invalid_field_value',
    'invalid_field_value '.padEnd(200, 'x'),
  ])
})

test('a key or a signing secret that a client puts into a path or names a field is not kept', async () => {
  const { text: key } = gateway.platform.issueKey()
  const signing = `whsec_${'aB3-_'.repeat(8)}`
  await gateway.ask(`/v1/${key}/messages`, { key })
  await gateway.ask(`/v1/echoes/${signing}/x?key=${key}`, { key })
  await gateway.ask(`/v1/echoes/1`, { key, body: `{"${key}":1e400}` })
  await logged(3)
  expect(gateway.platform.apiCalls.map(({ path, problem }) => [path, problem])).toEqual([
    ['/v1/svc_live_***/messages', 'resource_not_found id'],
    ['/v1/echoes/whsec_***/x', 'resource_not_found path'],
    ['/v1/echoes/1', 'invalid_field_value svc_live_***'],
  ])
})

test('while the platform service is away calls wait, and are kept once it is back', async () => {
  const { text: key } = gateway.platform.issueKey()
  await gateway.ask('/v1/me', { key })
  await logged(1)
  await gateway.platform.stop()
  const lines = logLines(gateway.app)
  for (let n = 0; n < 5; n++) expect((await gateway.ask('/v1/accounts', { key })).status).toBe(503)
  const told = () => lines.filter((line) => 'msg' in line && String(line.msg).includes('API log'))
  await expect
    .poll(told)
    .toMatchObject([{ level: 'warn', msg: expect.stringContaining('wait'), err: expect.any(Error) }])
  const back = await startTestPlatform(gateway.peer)
  await logged(5, { ...gateway, platform: back })
  await gateway.ask('/v1/health')
  await logged(6, { ...gateway, platform: back })
  expect(told()).toMatchObject([{}, { level: 'warn', msg: expect.stringContaining('again') }])
  expect(new Set(back.apiCalls.map(({ request_id: id }) => id)).size).toBe(6)
  await back.stop()
  vi.restoreAllMocks()
})

test('a stop just after the platform service was away sends what waits at once', async () => {
  await gateway.platform.stop()
  const lines = logLines(gateway.app)
  await gateway.ask('/v1/health')
  await expect.poll(() => lines).toContainEqual(expect.objectContaining({ level: 'warn' }))
  vi.restoreAllMocks()
  const back = await startTestPlatform(gateway.peer)
  await gateway.app.apiLog.stop()
  expect(back.apiCalls).toHaveLength(1)
  await back.stop()
})

test('a batch of which nobody knows whether it arrived comes again as it was, by the same name', async () => {
  const { platform } = gateway
  let isLost = true
  const sentAt: number[] = []
  platform.afterRecording = () => {
    sentAt.push(performance.now())
    if (!isLost) return
    isLost = false
    throw new Problem('service_unavailable')
  }
  const { 'x-request-id': first } = (await gateway.ask('/v1/health')).headers
  await expect.poll(() => platform.batches.length, { timeout: 5_000 }).toBe(1)
  const { 'x-request-id': second } = (await gateway.ask('/v1/health')).headers
  await logged(3)
  expect(platform.apiCalls.map((one) => one.request_id)).toEqual([first, first, second])
  const [name, again, next] = platform.batches
  expect(again).toBe(name)
  expect(next).not.toBe(name)
  const [lostAt = 0, againAt = 0] = sentAt
  expect(againAt - lostAt).toBeGreaterThan(900)
})

test('a stop sends what is left, and gives up after 2 s when nobody says that it is recorded', async () => {
  const { platform } = gateway
  await gateway.ask('/v1/health')
  await gateway.app.apiLog.stop()
  expect(platform.apiCalls).toHaveLength(1)
  const { promise, resolve } = Promise.withResolvers<void>()
  platform.afterRecording = () => promise
  await gateway.ask('/v1/health')
  const startedAt = performance.now()
  await gateway.app.apiLog.stop()
  const tookMs = performance.now() - startedAt
  resolve()
  expect(tookMs).toBeLessThan(5_000)
})

test('a stop tries to send what is left again and again, and not without a pause', async () => {
  const { platform } = gateway
  platform.afterRecording = () => {
    throw new Problem('service_unavailable')
  }
  await gateway.ask('/v1/health')
  await gateway.app.apiLog.stop()
  expect(platform.batches.length).toBeGreaterThanOrEqual(5)
  expect(platform.batches.length).toBeLessThan(20)
  // It is stopped once more when the test ends.
  platform.afterRecording = () => {}
})

/** As many calls of a key, as though they had just been answered. */
function recordCalls(count: number, identities: { organizationId: string; keyId: string }[] = [], durationMs = 1) {
  for (let n = 0; n < count; n++) {
    const value = identities[n % identities.length]
    const exchange = {
      request: { raw: { url: '/v1/me', method: 'GET' } },
      route: { method: 'GET', pattern: '/v1/me' },
      requestId: newId('req'),
      identity: value ? { value } : null,
      ip: '',
    }
    gateway.app.apiLog.record(exchange as never, { status: 200, durationMs, refusal: undefined })
  }
}

test('a call that took long is kept with the time at which it came', async () => {
  recordCalls(1, [], 60_000)
  await logged(1)
  expect(Date.now() - Date.parse(gateway.platform.apiCalls[0]?.at ?? '')).toBeGreaterThanOrEqual(60_000)
})

test('what has waited goes in batches of 2,000, each call with its own key', async () => {
  await gateway.platform.stop()
  const identities = ['a', 'b', 'c'].map((name) => ({ organizationId: `org_${name}`, keyId: `key_${name}` }))
  recordCalls(4_500, identities)
  const back = await startTestPlatform(gateway.peer)
  await logged(4_500, { ...gateway, platform: back })
  expect(new Set(back.batches).size).toBe(back.batches.length)
  expect(back.batches.length).toBeGreaterThanOrEqual(3)
  expect(new Set(back.apiCalls.map(({ request_id: id }) => id)).size).toBe(4_500)
  const whose = back.apiCalls.map((call) => ({ organizationId: call.organization_id, keyId: call.key_id }))
  expect(whose).toEqual(back.apiCalls.map((_call, n) => identities[n % 3]))
  await back.stop()
})

test('what is more than a minute of calls is dropped and counted', async () => {
  await gateway.platform.stop()
  recordCalls(60_010)
  const metrics = await gateway.app.probes.metrics.metrics()
  expect(metrics).toContain('svc_api_log_dropped_total{service="gateway"} 10')
})
