import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { answerClientError } from './client-errors.ts'

/** What a server with short time limits answers to bytes after which nothing comes. */
async function say(bytes: string, answer = 'late') {
  const server = createServer({ headersTimeout: 100, requestTimeout: 200, connectionsCheckingInterval: 20 })
  server.on('clientError', answerClientError)
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
    expect(response).toMatch(/^HTTP\/1.1 400 Bad Request\r\n[\s\S]*Connection: close\r\n\r\n/)
    const { error } = JSON.parse(response.slice(response.indexOf('{')))
    expect(error).toMatchObject({ code: 'invalid_field_value', message: 'The request did not arrive in time.' })
    expect(response).toContain(`X-Request-Id: ${error.request_id}\r\n`)
  }
})

test('a request that was answered before it was whole is not answered twice', async () => {
  const response = await say('POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\nab', 'early')
  expect(response.match(/HTTP\/1.1/g)).toHaveLength(1)
  expect(response).toContain('early')
})
