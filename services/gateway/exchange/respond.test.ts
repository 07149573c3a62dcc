import { once } from 'node:events'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { setImmediate } from 'node:timers/promises'
import { until } from '@app/test/until.ts'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { startTestGateway, type TestGateway } from '../testing/gateway.ts'

let gateway: TestGateway
beforeAll(async () => (gateway = await startTestGateway()))
afterAll(() => gateway.close())

async function connected() {
  const socket = connect(Number(new URL(gateway.url).port), '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  await once(socket, 'connect')
  return socket
}

const headOf = (start: string, length: number, more = '') =>
  `${start} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n${more}\r\n`

/** What is answered to a request before its body has come. */
async function answerBefore(start: string) {
  const socket = await connected()
  socket.write(headOf(start, 100))
  const [answer] = (await once(socket, 'data')) as [Buffer]
  return answer.toString()
}

test.each([
  ['POST /v1/echoes/a', 401],
  ['POST /nothing', 401],
  ['POST /upstream/callbacks', 401],
  ['POST /setup/begin', 400],
  ['GET /setup/page.css', 200],
  ['GET /media/nothing', 503],
])('what is answered before its body has come is the last of its connection: %s', async (start, status) => {
  const answer = await answerBefore(start)
  expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
  expect(answer.match(/^connection: .*$/gim)?.map((line) => line.toLowerCase())).toEqual(['connection: close'])
})

test.each(['', 'connection: close\r\n'])(
  'a refused body can be written to its end (%j), and then the answer is there',
  async (more) => {
    const socket = await connected()
    const length = 24 * 1024 * 1024
    socket.write(headOf('POST /v1/1234567/media', length, more))
    // As a proxy does that has the whole of it, and reads when it has written.
    socket.pause()
    for (let n = 0; n < 24; n++) if (!socket.write(Buffer.alloc(1024 * 1024))) await once(socket, 'drain')
    const answer = await text(socket)
    expect(answer).toMatch(/^HTTP\/1.1 401 .*missing_api_key/s)
  },
)

test('a refused request whose body came with its head leaves the connection to the next', async () => {
  const socket = await connected()
  socket.write(`${headOf('POST /v1/echoes/a', 2)}{}${headOf('POST /v1/echoes/b', 2, 'connection: close\r\n')}{}`)
  expect((await text(socket)).match(/HTTP\/1.1 401 /g)).toHaveLength(2)
})

test('a client that goes away in the middle of its body leaves no timer behind', async () => {
  const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
  const before = timers()
  const sockets = await Promise.all(Array.from({ length: 20 }, connected))
  const { text: key } = gateway.platform.issueKey()
  for (const socket of sockets) socket.write(`${headOf('POST /v1/echoes/a', 100, `authorization: Bearer ${key}\r\n`)}{`)
  await until(() => expect(gateway.app.inFlight.bytes).toBe(sockets.length))
  for (const socket of sockets) socket.resetAndDestroy()
  await until(() => expect(gateway.app.inFlight.bytes).toBe(0))
  await setImmediate()
  expect(timers() - before).toBeLessThan(sockets.length)
})
