import { EventEmitter, once } from 'node:events'
import { createServer, type Server, type ServerResponse } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test, vi } from 'vitest'
import { boundConnections } from './connections.ts'
import { boundPipelines } from './pipelines.ts'

/** A server with three connections; `/wait` is answered when it is told, `/long` with more than a socket holds. */
async function start() {
  const waiting: ServerResponse[] = []
  const server = createServer((request, response) => {
    if (request.url !== '/') waiting.push(response)
    if (request.url === '/long') response.end(Buffer.alloc(32 * 1024 * 1024))
    if (request.url === '/') request.resume().on('end', () => response.end('done'))
  })
  boundPipelines(server, boundConnections(server, 3))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  async function open() {
    const socket = connect(port, '127.0.0.1')
    onTestFinished(() => void socket.destroy())
    socket.on('error', () => {})
    const connection = {
      said: '',
      isOpen: true,
      leave: () => void socket.destroy(),
      ask: (path = '/') => void socket.write(`GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`),
      give: (bytes: string) => void socket.write(bytes),
      stopReading: () => void socket.pause(),
    }
    socket.on('data', (bytes) => (connection.said += String(bytes)))
    socket.on('close', () => (connection.isOpen = false))
    await once(socket, 'connect')
    return connection
  }
  async function openAndAsk(path?: string) {
    const connection = await open()
    connection.ask(path)
    if (path === undefined) await expect.poll(() => connection.said).toContain('done')
    return connection
  }
  /** Gives a part of a body, and the server some time to take it. */
  async function openAndGive() {
    const connection = await open()
    const taken = once(server, 'request')
    connection.give('POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n')
    await taken
    return connection
  }
  return { open, openAndAsk, openAndGive, waiting }
}

test('a connection beyond the bound takes the place of that which has been idle for the longest', async () => {
  const { openAndAsk } = await start()
  const [first, second, third] = [await openAndAsk(), await openAndAsk(), await openAndAsk()]
  first.said = ''
  first.ask()
  await expect.poll(() => first.said).toContain('done')
  await openAndAsk()
  await expect.poll(() => second.isOpen).toBe(false)
  expect([first.isOpen, third.isOpen]).toEqual([true, true])
  await openAndAsk()
  await expect.poll(() => third.isOpen).toBe(false)
  expect(first.isOpen).toBe(true)
})

test('one that waits for an answer keeps its place, and where all do a new one is turned away', async () => {
  const { openAndAsk, waiting } = await start()
  const working = [await openAndAsk('/wait'), await openAndAsk('/wait'), await openAndAsk('/wait')]
  await expect.poll(() => waiting).toHaveLength(3)
  const refused = await openAndAsk('/wait')
  await expect.poll(() => refused.isOpen).toBe(false)
  expect(working.map(({ isOpen }) => isOpen)).toEqual([true, true, true])
  waiting[0]?.end('done')
  await expect.poll(() => working[0]?.said).toContain('done')
  await openAndAsk()
  await expect.poll(() => working[0]?.isOpen).toBe(false)
})

test('one whose client has left while it waited for its answer takes no place', async () => {
  const { openAndAsk, waiting } = await start()
  const left = await openAndAsk('/wait')
  await expect.poll(() => waiting).toHaveLength(1)
  left.leave()
  await expect.poll(() => waiting[0]?.closed).toBe(true)
  const [first] = [await openAndAsk(), await openAndAsk(), await openAndAsk(), await openAndAsk()]
  // Before the time is over that an idle one may stay open.
  await expect.poll(() => first.isOpen, { timeout: 3_000 }).toBe(false)
})

test('one whose client does not give its body, or does not read its answer, gives way as an idle one does', async () => {
  const { open, openAndAsk, openAndGive, waiting } = await start()
  const unread = await open()
  unread.stopReading()
  unread.ask('/long')
  const [first, second] = [await openAndGive(), await openAndGive()]
  await expect.poll(() => waiting[0]?.headersSent).toBe(true)
  await openAndAsk()
  await expect.poll(() => first.isOpen).toBe(false)
  await openAndAsk()
  await expect.poll(() => second.isOpen).toBe(false)
  expect(waiting[0]?.closed).toBe(false)
  await openAndAsk()
  await expect.poll(() => waiting[0]?.closed).toBe(true)
})

test('one whose body goes on goes behind the others', async () => {
  const { openAndAsk, openAndGive } = await start()
  const [first, second, third] = [await openAndGive(), await openAndGive(), await openAndGive()]
  first.give('x')
  await sleep(100)
  await openAndAsk()
  await expect.poll(() => second.isOpen).toBe(false)
  await openAndAsk()
  await expect.poll(() => third.isOpen).toBe(false)
  expect(first.isOpen).toBe(true)
})

test('a new one looks at two hundred others at most, and the next one at those behind them', () => {
  const server = new EventEmitter()
  const connections = boundConnections(server as Server, 300)
  const looks: number[] = []
  function open(n: number) {
    const socket = Object.assign(new EventEmitter(), { bytesRead: 0, bytesWritten: 0, destroy: vi.fn() })
    server.emit('connection', socket)
    connections.begins(socket as unknown as Socket, () => looks.push(n) > 0)
    return socket
  }
  for (let n = 0; n < 300; n++) open(n)
  expect(looks).toEqual([])
  expect(open(300).destroy).toHaveBeenCalledOnce()
  expect(looks).toEqual(Array.from({ length: 200 }, (_, n) => n))
})
