import { once } from 'node:events'
import { connect } from 'node:net'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { prepareStop } from './stop-listening.ts'
import { startTestGateway, type TestGateway } from './testing/gateway.ts'

let gateway: TestGateway
beforeEach(async () => (gateway = await startTestGateway()))
afterEach(() => gateway.close())

const withinMs = 2_500

/** How long a stop takes while a client has said that, and says no more. */
async function stopWhile(said: string) {
  const stop = prepareStop(gateway.http, gateway.app, { withinMs })
  const socket = connect(Number(new URL(gateway.url).port), '127.0.0.1')
  await Promise.all([once(socket, 'connect'), once(gateway.http.server, 'connection')])
  socket.on('error', () => {}).write(said)
  const startedAt = performance.now()
  await stop()
  socket.destroy()
  return performance.now() - startedAt
}

test('a stop does not wait for a connection that never said anything', async () => {
  expect(await stopWhile('')).toBeLessThan(withinMs)
})

test('a stop waits for a while for the rest of a request, and no longer', async () => {
  const tookMs = await stopWhile('GET /v1/me HTTP/1.1\r\nhost: ')
  expect(tookMs).toBeGreaterThan(500 + withinMs - 50)
  expect(tookMs).toBeLessThan(500 + withinMs + 2_000)
})

test('a stop begins with a farewell: new connections are answered, and what still arrives later on open ones', async () => {
  const stop = prepareStop(gateway.http, gateway.app, { withinMs })
  const socket = connect(Number(new URL(gateway.url).port), '127.0.0.1')
  socket.on('error', () => {}).write('GET /v1/me HTTP/1.1\r\nhost: ')
  let said = ''
  socket.on('data', (bytes) => (said += String(bytes)))
  await once(socket, 'connect')
  const [stopping, closed] = [stop(), once(socket, 'close')]
  expect((await gateway.ask('/v1/me')).headers.connection).toBe('close')
  await expect.poll(() => gateway.http.server.listening).toBe(false)
  socket.write('x\r\n\r\n')
  await Promise.all([stopping, closed])
  expect(said).toMatch(/^HTTP\/1\.1 401 /)
})

test('every answer after the stop signal is the last of its connection', async () => {
  gateway.app.beginStop()
  const paths = [
    '/v1/health',
    '/v1/me',
    '/nothing',
    '/setup',
    '/setup/page.css',
    '/upstream/callbacks',
    '/media/nothing',
  ]
  const answers = await Promise.all(paths.map((path) => gateway.ask(path)))
  expect(answers.map(({ headers }) => headers.connection)).toEqual(paths.map(() => 'close'))
})
