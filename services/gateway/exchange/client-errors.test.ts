import { createServer } from 'node:http'
import { connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { listen } from '@app/test/listen.ts'
import { expect, onTestFinished, test, vi } from 'vitest'
import { pino } from 'pino'
import { answersClientErrors } from './client-errors.ts'

/** What was logged. */
const lines: Record<string, unknown>[] = []
const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(JSON.parse(line)) })

/** What a server with short time limits answers to bytes after which nothing comes. */
async function say(bytes: string, answer = 'late', answering = answersClientErrors(log)) {
  const server = createServer({ headersTimeout: 100, requestTimeout: 200, connectionsCheckingInterval: 20 })
  server.on('clientError', (err, socket) => answering(err, socket as Socket))
  server.on('request', (request, response) => {
    if (answer === 'early') response.end('early')
    request.resume()
  })
  const port = await listen(server)
  const socket = connect(port, '127.0.0.1', () => socket.write(bytes))
  const said = await text(socket)
  server.close()
  return said
}

test('headers and bodies that do not arrive in time are answered in the envelope', async () => {
  for (const bytes of ['GET / HTTP/1.1\r\nhost: ', 'POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\nab']) {
    const response = await say(bytes)
    expect(response).toMatch(/^HTTP\/1.1 408 Request Timeout\r\n[\s\S]*Connection: close\r\n\r\n/)
    const { error } = JSON.parse(response.slice(response.indexOf('{')))
    expect(error).toMatchObject({ code: 'request_timeout', message: 'The request did not arrive in time.' })
    expect(response).toContain(`X-Request-Id: ${error.request_id}\r\n`)
    expect(lines.at(-1)).toMatchObject({
      msg: 'http',
      request: error.request_id,
      status: 408,
      problem: 'request_timeout',
      why: 'ERR_HTTP_REQUEST_TIMEOUT',
    })
  }
})

test('whoever sends what is no HTTP as fast as they can is answered each time, and fills no log', async () => {
  const now = vi.spyOn(performance, 'now').mockReturnValue(5_000)
  onTestFinished(() => now.mockRestore())
  const before = lines.length
  const answering = answersClientErrors(log)
  for (let n = 0; n < 15; n++) expect(await say('X\r\n\r\n', 'late', answering)).toMatch(/^HTTP\/1.1 400 /)
  expect(lines.slice(before)).toHaveLength(10)
  now.mockReturnValue(6_000)
  await say('X\r\n\r\n', 'late', answering)
  await say('X\r\n\r\n', 'late', answering)
  expect(lines.slice(before + 10).map(({ untold }) => untold)).toEqual([5, undefined])
})

test('a request that was answered before it was whole is not answered twice', async () => {
  const response = await say('POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\nab', 'early')
  expect(response.match(/HTTP\/1.1/g)).toHaveLength(1)
  expect(response).toContain('early')
})
