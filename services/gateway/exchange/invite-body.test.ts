import { once } from 'node:events'
import { createServer } from 'node:http'
import { connect } from 'node:net'
import { listen } from '@app/test/listen.ts'
import { until } from '@app/test/until.ts'
import { expect, onTestFinished, test } from 'vitest'
import { createInFlight } from '../limits/in-flight.ts'
import { heedExpectations } from './invite-body.ts'
import { readBody } from './read-body.ts'
import { respond } from './respond.ts'

/** A server that reads what is posted to /read, and nothing else; `answers` is what a client has heard. */
async function post(path: string, expectation: string) {
  const server = createServer((request, response) => {
    const body = request.url === '/read' ? readBody(request, 100, createInFlight(), 'owner') : Promise.resolve('')
    void body.then((bytes) => respond(response, 200, ['Content-Length', String(bytes.length)], bytes))
  })
  heedExpectations(server)
  const socket = connect(await listen(server), '127.0.0.1')
  onTestFinished(() => {
    socket.destroy()
    server.close()
  })
  let answers = ''
  socket.on('data', (chunk: Buffer) => (answers += chunk.toString()))
  socket.write(`POST ${path} HTTP/1.1\r\nhost: x\r\nexpect: ${expectation}\r\ncontent-length: 4\r\n\r\n`)
  return { socket, answers: () => answers }
}

test('a body is asked for once somebody reads it', async () => {
  const { socket, answers } = await post('/read', '100-continue')
  await until(() => expect(answers()).toBe('HTTP/1.1 100 Continue\r\n\r\n'))
  socket.write('body')
  await until(() => expect(answers()).toMatch(/Continue\r\n\r\nHTTP\/1\.1 200 OK\r\n[^]*\r\n\r\nbody$/))
})

test('a body that nobody reads is not, and its connection ends; one that comes all the same is thrown away', async () => {
  const { socket, answers } = await post('/refuse', '100-continue')
  await until(() => expect(answers()).toMatch(/^HTTP\/1\.1 200 OK\r\n[^]*Connection: close\r\n/))
  socket.write('body')
  await once(socket, 'end')
  expect(answers()).not.toContain('body')
})

test('what else is expected is passed over', async () => {
  const { socket, answers } = await post('/read', 'miracles')
  socket.write('body')
  await until(() => expect(answers()).toMatch(/^HTTP\/1\.1 200 OK\r\n[^]*\r\n\r\nbody$/))
})
