import { once } from 'node:events'
import { connect } from 'node:net'
import { type CallHeader, readCall } from '@app/shared/bus/call-header.ts'
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'
import { countWarnings, logLines, mostLinesSince } from '../testing/log-lines.ts'
import { startTestGateway, type TestGateway } from '../testing/gateway.ts'

let gateway: TestGateway
beforeAll(async () => (gateway = await startTestGateway()))
afterAll(() => gateway.close())
afterEach(() => void vi.restoreAllMocks())

const headers = { cookie: `svc_setup=${'x'.repeat(43)}`, 'sec-fetch-site': 'same-origin' }
const line = { msg: 'http', method: 'POST', route: '/setup/begin', durationMs: expect.any(Number) }

test('a request outside /v1 is told of in one line, with the trace of its question and no token', async () => {
  const asked = Promise.withResolvers<CallHeader>()
  const answering = gateway.peer.nc.subscribe('rpc.platform.begin-setup', {
    callback: (_err, message) => {
      asked.resolve(readCall(message.headers))
      message.respond('{}')
    },
  })
  const lines = logLines(gateway.app)
  expect((await gateway.ask('/setup/begin', { body: {}, headers })).status).toBe(200)
  answering.unsubscribe()
  const [, trace] = (await asked.promise).trace.split('-')
  await expect.poll(() => lines).toEqual([{ ...line, level: 'debug', trace, status: 200 }])
  await gateway.ask('/setup/begin?secret=1', { body: {}, headers })
  await expect.poll(() => lines).toContainEqual({ ...line, level: 'warn', trace: expect.any(String), status: 503 })
  await gateway.ask(`/setup/${'x'.repeat(43)}`)
  await expect.poll(() => lines).toContainEqual(expect.objectContaining({ route: '/setup/:token', status: 303 }))
})

test('strangers who are turned away, however many they are, fill no log', async () => {
  const lines = logLines(gateway.app)
  const mostTold = mostLinesSince()
  const ask = (n: number) => {
    const from = { 'x-forwarded-for': `198.51.100.${n}` }
    return [
      gateway.ask('/media/some', { headers: from }),
      gateway.ask('/setup', { headers: { ...headers, ...from } }),
      gateway.ask('/setup/begin', { body: {}, headers: { ...headers, ...from } }),
    ]
  }
  gateway.app.inFlight.count += 4_096
  const answers = await Promise.all(Array.from({ length: 60 }, (_, n) => ask(n)).flat())
  gateway.app.inFlight.count -= 4_096
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([503]))
  // With those of the tests before.
  await expect.poll(() => countWarnings(lines)).toBeGreaterThan(0)
  expect(countWarnings(lines)).toBeLessThanOrEqual(mostTold())
})

test('a client that goes away before its answer is a 499', async () => {
  const { pathname, port } = new URL('/setup/begin', gateway.url)
  const socket = connect(Number(port), '127.0.0.1')
  await once(socket, 'connect')
  const lines = logLines(gateway.app)
  const head = Object.entries({ ...headers, 'content-type': 'application/json', 'content-length': 2 })
  socket.write(
    `POST ${pathname} HTTP/1.1\r\nhost: x\r\n${head.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n{`,
  )
  await expect.poll(() => gateway.app.inFlight.bytes).toBe(1)
  socket.destroy()
  await expect.poll(() => lines).toContainEqual({ ...line, level: 'debug', trace: expect.any(String), status: 499 })
})
