import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { boundConnections } from './connections.ts'
import { boundPipelines } from './pipelines.ts'

/** A server with three connections; `/wait` is answered when it is told. */
async function start() {
  const waiting: ServerResponse[] = []
  const server = createServer((request, response) => {
    if (request.url === '/wait') waiting.push(response)
    else response.end('done')
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
  return { openAndAsk, waiting }
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
