import { createServer, type Server } from 'node:http'
import { createServer as createTcpServer, type Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import { createEgress } from '@app/shared/outside/egress.ts'
import { listen } from '@app/test/listen.ts'
import { until } from '@app/test/until.ts'
import { afterEach, expect, test } from 'vitest'
import { post } from './post.ts'

const { dispatcher } = createEgress({ allowCidrs: '127.0.0.0/8' })
const open: { close: () => unknown }[] = []
afterEach(() => open.splice(0).forEach((server) => server.close()))

async function urlOf(server: Server | ReturnType<typeof createTcpServer>) {
  open.push(server)
  return `http://127.0.0.1:${await listen(server)}/hook?a=b`
}

const usual = { headers: ['content-type', 'application/json'], body: Buffer.from('{}'), mayBegin: () => true }

async function postTo(url: string, timeoutMs = 5_000) {
  const answer = await post(dispatcher, { ...usual, url, timeoutMs })
  if (!answer) throw new Error('it did not begin')
  return answer
}

/** Answers with these bytes, and does no more. */
const raw = (bytes: string, then: (socket: Socket) => void = () => {}) =>
  urlOf(
    createTcpServer((socket) => {
      socket.on('error', () => {})
      socket.once('data', () => socket.write(bytes, () => then(socket)))
    }),
  )

test('the path and query of the URL are asked for, and the answer comes with its snippet', async () => {
  let asked = ''
  const url = await urlOf(
    createServer((request, response) => {
      asked = `${request.method} ${request.url}`
      response.writeHead(201, { 'retry-after': '5' }).end('thanks')
    }),
  )
  expect(await postTo(url)).toEqual({ status: 201, retryAfter: '5', snippet: 'thanks' })
  expect(asked).toBe('POST /hook?a=b')
})

test('4 KiB of the body are kept, of 16 KiB that are read, and the connection is given up', async () => {
  let closed = false
  const url = await urlOf(
    createServer((request, response) => {
      request.socket.on('close', () => (closed = true))
      const more = () => {
        while (!closed && response.write('é'.repeat(1_000)));
        if (!closed) response.once('drain', more)
      }
      more()
    }),
  )
  const answer = await postTo(url, 60_000)
  expect(answer).toMatchObject({ status: 200, snippet: 'é'.repeat(2_048) })
  await until(() => expect(closed).toBe(true))
})

test('a body that ends leaves the connection to the next attempt', async () => {
  let connections = 0
  const server = createServer((_, response) => response.end('x'.repeat(10_000)))
  server.on('connection', () => connections++)
  const url = await urlOf(server)
  await postTo(url)
  await new Promise(setImmediate)
  await postTo(url)
  expect(connections).toBe(1)
})

/** Answers the first call of each connection; the next ones meet its end, after so many milliseconds. */
async function forgetful(end: (socket: Socket) => void, afterMs = 0) {
  const got: number[] = []
  let connections = 0
  const server = createTcpServer((socket) => {
    const connection = ++connections
    let calls = 0
    socket.on('error', () => {})
    socket.on('data', () => {
      got.push(connection)
      if (++calls === 1) socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok')
      else setTimeout(end, afterMs, socket)
    })
  })
  return { got, url: await urlOf(server) }
}

test.each<[string, (socket: Socket) => void]>([
  ['is closed', (socket) => socket.end()],
  ['is reset', (socket) => socket.resetAndDestroy()],
])('a call that meets the end of a kept connection, which %s, is made again at once', async (_, end) => {
  const { got, url } = await forgetful(end)
  expect(await postTo(url)).toMatchObject({ status: 200 })
  await new Promise(setImmediate)
  expect(await postTo(url)).toMatchObject({ status: 200, snippet: 'ok' })
  expect(got).toEqual([1, 1, 2])
})

test('all that was kept may end together, as when a server is restarted', async () => {
  const { got, url } = await forgetful((socket) => socket.end())
  const three = () => Promise.all([1, 2, 3].map(() => postTo(url)))
  await three()
  await new Promise(setImmediate)
  expect((await three()).map(({ status }) => status)).toEqual([200, 200, 200])
  expect(got).toHaveLength(9)
})

test('who had the call for longer, or ends a connection that is new, has failed', async () => {
  const failed = { status: null, failure: { failure: 'connection_failed', isOurs: false } }
  const slow = await forgetful((socket) => socket.end(), 1_100)
  await postTo(slow.url)
  await new Promise(setImmediate)
  expect(await postTo(slow.url)).toMatchObject(failed)
  expect(slow.got).toEqual([1, 1])
  let calls = 0
  const rude = createTcpServer((socket) =>
    socket.once('data', () => {
      calls++
      socket.end()
    }),
  )
  expect(await postTo(await urlOf(rude))).toMatchObject(failed)
  expect(calls).toBe(1)
})

test('a call that may not be made again fails as it did', async () => {
  const { got, url } = await forgetful((socket) => socket.end())
  await postTo(url)
  await new Promise(setImmediate)
  let asked = 0
  const answer = await post(dispatcher, { ...usual, url, timeoutMs: 5_000, mayBegin: () => ++asked === 1 })
  expect(answer).toMatchObject({ status: null, failure: { failure: 'connection_failed' } })
  expect(got).toEqual([1, 1])
})

test('a snippet is text that Postgres can hold', async () => {
  const url = await urlOf(createServer((_, response) => response.end(Buffer.from([0x61, 0x00, 0xff, 0xfe, 0x62]))))
  expect(await postTo(url)).toMatchObject({ snippet: 'a\uFFFD\uFFFDb' })
})

test('no character is kept by half', async () => {
  const url = await urlOf(createServer((_, response) => response.end(`${'a'.repeat(4_094)}👋👋`)))
  expect(await postTo(url)).toMatchObject({ snippet: 'a'.repeat(4_094) })
})

test('a body of one byte a second is given up in time, and the 2xx stays a success', async () => {
  const url = await urlOf(createServer((_, response) => void response.writeHead(200).write('a')))
  const startedAt = performance.now()
  expect(await postTo(url, 300)).toMatchObject({ status: 200, snippet: 'a' })
  expect(performance.now() - startedAt).toBeLessThan(5_000)
})

test('a body that breaks off changes nothing', async () => {
  const url = await raw('HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nabc', (socket) => socket.destroy())
  expect(await postTo(url)).toMatchObject({ status: 200 })
})

test('a compressed body is kept as it came', async () => {
  const bomb = gzipSync(Buffer.alloc(10_000_000))
  const url = await urlOf(
    createServer((_, response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb)),
  )
  const answer = await postTo(url)
  expect(answer.status === null ? '' : answer.snippet).toContain('\uFFFD')
})

test.each([
  ['early hints', 'HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n'],
  // Some servers and proxies say it to every POST.
  ['a leave to go on that was not asked for', 'HTTP/1.1 100 Continue\r\n\r\n'],
  ['two of them', 'HTTP/1.1 100 Continue\r\n\r\n'.repeat(2)],
])('what comes before the answer is no answer: %s', async (_, before) => {
  const url = await raw(`${before}HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok`)
  expect(await postTo(url)).toMatchObject({ status: 200, snippet: 'ok' })
})

test('silence ends in a timeout', async () => {
  const url = await urlOf(createServer(() => {}))
  const startedAt = performance.now()
  expect(await postTo(url, 200)).toMatchObject({ status: null, failure: { failure: 'timeout' } })
  expect(performance.now() - startedAt).toBeLessThan(5_000)
})

test.each([
  [
    'endless headers',
    `HTTP/1.1 200 OK\r\n${'x-a: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n'.repeat(2_000)}`,
    'invalid_response',
  ],
  ['no HTTP', 'SSH-2.0-OpenSSH_9.6\r\n', 'invalid_response'],
])('%s', async (_, bytes, failure) => {
  expect(await postTo(await raw(bytes))).toMatchObject({ status: null, failure: { failure } })
})

test('a refused address', async () => {
  expect(await postTo('http://10.0.0.1/')).toMatchObject({ status: null, failure: { failure: 'blocked_address' } })
})

test('what may not begin any more when it has its connection tells the endpoint nothing', async () => {
  let calls = 0
  const url = await urlOf(createServer((_, response) => response.end(`${++calls}`)))
  expect(await post(dispatcher, { ...usual, url, timeoutMs: 5_000, mayBegin: () => false })).toBeNull()
  expect(await postTo(url)).toMatchObject({ snippet: '1' })
})
