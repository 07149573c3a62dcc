import { once } from 'node:events'
import { createServer, type RequestListener, type ServerResponse } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'
import { boundConnections } from './connections.ts'
import { boundPipelines } from './pipelines.ts'

/** Says something to a bounded server; what it answers until it ends the connection. */
async function say(bytes: string, take: RequestListener) {
  const server = createServer(take)
  boundPipelines(server, boundConnections(server, 10))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  const socket = connect(port, '127.0.0.1', () => socket.write(bytes))
  socket.on('error', () => {})
  onTestFinished(() => void socket.destroy())
  return text(socket)
}

const get = 'GET / HTTP/1.1\r\nhost: x\r\n\r\n'
const post = 'POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\nhi'
const countOf = (said: string, words: string) => said.split(words).length - 1

test.each([
  ['without bodies', get],
  ['with bodies', post],
])(
  'of requests %s that one connection sends at once, eight are taken, and the eighth answer is its last',
  async (_, one) => {
    let taken = 0
    const said = await say(one.repeat(1_200), (request, response) => {
      taken++
      request.resume()
      setImmediate(() => response.end('done'))
    })
    expect([taken, countOf(said, 'HTTP/1.1 200')]).toEqual([8, 8])
    expect(said).toMatch(/Connection: close\r\n(?:(?!HTTP).)*done(?:\r\n0\r\n\r\n)?$/s)
    expect(countOf(said, 'Connection: close')).toBe(1)
  },
)

test('the connection ends as well when the head of the eighth answer was there before', async () => {
  const responses: ServerResponse[] = []
  const said = await say(get.repeat(20), (_, response) => {
    response.writeHead(200, { 'content-length': 4 }).flushHeaders()
    if (responses.push(response) === 8) setImmediate(() => responses.forEach((one) => one.end('done')))
  })
  expect(countOf(said, 'done')).toBe(8)
})

test('what was answered counts no more', async () => {
  let left = 20
  const server = createServer((_, response) => response.end('done'))
  boundPipelines(server, boundConnections(server, 10))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => void server.close())
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1', () => socket.write(get.repeat(8)))
  onTestFinished(() => void socket.destroy())
  let said = ''
  await new Promise<void>((resolve) => {
    socket.on('data', (bytes) => {
      said += String(bytes)
      if (countOf(said, 'done') < 8) return
      said = ''
      if (--left === 0) resolve()
      else socket.write(get.repeat(8))
    })
  })
  expect(left).toBe(0)
})
