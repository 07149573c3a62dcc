import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { createServer as createNetServer, type Server, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { freezeFor } from '@app/test/freeze.ts'
import { listen } from '@app/test/listen.ts'
import { until } from '@app/test/until.ts'
import { usedBytes } from '@app/test/used-bytes.ts'
import { Agent } from 'undici'
import { expect, onTestFinished, test } from 'vitest'
import { inTime } from '../work/overdue.ts'
import { postOnce } from './post-once.ts'

/** A server until the test is over, who asks it, and what it is asked. */
async function serve(server: Server, options?: Agent.Options) {
  const port = await listen(server)
  const dispatcher = new Agent(options)
  onTestFinished(async () => {
    await dispatcher.destroy()
    server.close()
  })
  return { dispatcher, call: { url: `http://127.0.0.1:${port}/`, headers: {}, body: '{}' } }
}

test('who was given up while it waited for a connection has not begun, and does not begin afterwards', async () => {
  const waiting: ServerResponse[] = []
  const server = createServer((_request, response) => void waiting.push(response))
  const { dispatcher, call } = await serve(server, { connections: 1, pipelining: 1 })
  const post = (path: string, timeoutMs: number) =>
    postOnce(dispatcher, { ...call, url: `${call.url}${path}`, timeoutMs })

  const first = post('first', 10_000)
  await until(() => expect(waiting).toHaveLength(1))
  expect(await post('second', 50)).toMatchObject({ head: null, hasBegun: false })
  waiting[0]?.end('one')
  expect(await first).toMatchObject({ head: { status: 200 }, body: Buffer.from('one'), err: undefined })
  const third = post('third', 10_000)
  await until(() => expect(waiting).toHaveLength(2))
  waiting[1]?.end('three')
  expect(await third).toMatchObject({ head: { status: 200 }, body: Buffer.from('three'), err: undefined })
  expect(waiting.map(({ req }) => req.url)).toEqual(['/first', '/third'])
})

test('who was given up before its answer has begun', async () => {
  const { dispatcher, call } = await serve(createServer((_request, response) => void response.write('{')))
  expect(await postOnce(dispatcher, { ...call, timeoutMs: 300 })).toMatchObject({
    hasBegun: true,
    err: { name: 'TimeoutError' },
  })
})

test('who was told nothing in time has begun all the same, and leaves the connection', async () => {
  const hungUp = Promise.withResolvers<unknown>()
  const { dispatcher, call } = await serve(createServer((request) => void request.socket.on('close', hungUp.resolve)))
  const told = await postOnce(dispatcher, { ...call, timeoutMs: 300 })
  expect(told).toMatchObject({ hasBegun: true, head: null, err: { name: 'TimeoutError' } })
  await inTime(hungUp.promise, 2_000)
})

test('what comes before an answer is none', async () => {
  const server = createNetServer((socket) =>
    socket.once('data', () => socket.end('HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n')),
  )
  const { dispatcher, call } = await serve(server)
  const told = await postOnce(dispatcher, { ...call, timeoutMs: 5_000 })
  expect(told).toMatchObject({ hasBegun: true, head: null, err: expect.any(Error) })
})

test('an answer that came while this process was busy counts, although the time for it is over', async () => {
  const program = `
    const server = require('node:http').createServer((_request, response) => response.end('here'))
    server.listen(0, '127.0.0.1', () => require('node:worker_threads').parentPort.postMessage(server.address().port))
  `
  const elsewhere = new Worker(program, { eval: true })
  const [port] = (await once(elsewhere, 'message')) as [number]
  const dispatcher = new Agent()
  onTestFinished(async () => {
    await dispatcher.destroy()
    await elsewhere.terminate()
  })
  const post = (timeoutMs: number) =>
    postOnce(dispatcher, { url: `http://127.0.0.1:${port}/`, headers: {}, body: '{}', timeoutMs })
  await post(5_000)
  // Its connection is free.
  await sleep(50)
  const answer = post(100)
  // It has left.
  setImmediate(() => freezeFor(400))
  expect(await answer).toMatchObject({ head: { status: 200 }, body: Buffer.from('here'), err: undefined })
})

test('an answer in tiny pieces takes no more room than what is kept of it', async () => {
  const count = 400
  const sent = Promise.withResolvers<Socket>()
  // The piece is a byte; what stands beside it on the wire came in the same buffer.
  const piece = `1;a=${'x'.repeat(60_000)}\r\ny\r\n`
  const server = createNetServer((socket) =>
    socket.once('data', () => {
      socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n')
      socket.write(piece.repeat(count), () => sent.resolve(socket))
    }),
  )
  const { dispatcher, call } = await serve(server)
  const most = { readBytes: 16_000, keptBytes: 4_000 }
  const before = usedBytes()
  const answer = postOnce(dispatcher, { ...call, timeoutMs: 10_000, most })
  const socket = await sent.promise
  await until(() => expect(usedBytes() - before).toBeLessThan(8 * 1024 * 1024))
  socket.end('0\r\n\r\n')
  expect(await answer).toMatchObject({ body: Buffer.from('y'.repeat(count)), err: undefined })
})
