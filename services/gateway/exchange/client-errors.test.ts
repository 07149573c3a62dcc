import { createServer } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { pino } from 'pino'
import { answerClientError } from './client-errors.ts'

/** What was logged. */
const lines: Record<string, unknown>[] = []
const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(JSON.parse(line)) })

/** What a server with short time limits answers to bytes after which nothing comes. */
async function say(bytes: string, answer = 'late') {
  const server = createServer({ headersTimeout: 100, requestTimeout: 200, connectionsCheckingInterval: 20 })
  server.on('clientError', (err, socket) => answerClientError(log, err, socket as Socket))
  server.on('request', (request, response) => {
    if (answer === 'early') response.end('early')
    request.resume()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
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

test('a request that was answered before it was whole is not answered twice', async () => {
  const response = await say('POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\nab', 'early')
  expect(response.match(/HTTP\/1.1/g)).toHaveLength(1)
  expect(response).toContain('early')
})
