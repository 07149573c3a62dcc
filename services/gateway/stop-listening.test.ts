import { once } from 'node:events'
import { connect } from 'node:net'
import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises'
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

function connected() {
  const socket = connect(Number(new URL(gateway.url).port), '127.0.0.1')
  let said = ''
  socket.on('error', () => {}).on('data', (bytes) => (said += String(bytes)))
  return {
    ask: () => socket.write('GET /v1/health HTTP/1.1\r\nhost: x\r\n\r\n'),
    answers: () => said.split('HTTP/1.1 200 ').length - 1,
  }
}

/** Nobody has a turn meanwhile. */
function holdUp(ms: number) {
  const until = performance.now() + ms
  while (performance.now() < until);
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

test('nothing that came to a busy process is lost with the connections that a stop closes as idle', async () => {
  const stop = prepareStop(gateway.http, gateway.app, { withinMs })
  const clients = Array.from({ length: 60 }, connected)
  clients.forEach(({ ask }) => ask())
  await expect.poll(() => clients.map(({ answers }) => answers())).toEqual(clients.map(() => 1))
  const stopping = stop()
  const until = performance.now() + 750
  await sleep(400)
  const asked: typeof clients = []
  for (const client of clients) {
    if (performance.now() > until) break
    client.ask()
    asked.push(client)
    holdUp(5)
    await turn()
  }
  await stopping
  await expect.poll(() => asked.filter(({ answers }) => answers() === 1)).toEqual([])
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
