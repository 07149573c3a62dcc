import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTestGateway, type TestGateway } from '../testing/gateway.ts'

let gateway: TestGateway
beforeAll(async () => (gateway = await startTestGateway()))
afterAll(() => gateway.close())

/** What is answered to JSON that comes in chunks of so many bytes, until its connection ends; without an `end` more would follow. */
function post(path: string, key: string, chunked: { length: number; chunkBytes: number; end: string }) {
  const { hostname, port } = new URL(gateway.url)
  const body = JSON.stringify({ a: 'x'.repeat(chunked.length - 8) })
  const chunks = body.match(new RegExp(`.{1,${chunked.chunkBytes}}`, 'g')) ?? []
  const head = [
    `POST ${path} HTTP/1.1\r\nhost: x\r\nconnection: close`,
    `authorization: Bearer ${key}\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n`,
  ].join('\r\n')
  const sent = chunks.map((chunk) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`).join('')
  const socket = connect(Number(port), hostname, () => socket.write(head + sent + chunked.end))
  socket.on('error', () => {})
  return text(socket).catch(() => '')
}

test.each([
  ['a short body, byte by byte,', { length: 1_000, chunkBytes: 1 }],
  ['a long one in small pieces', { length: 200_000, chunkBytes: 20 }],
])('%s is taken', async (_, chunked) => {
  const answer = await post('/v1/echoes/a', gateway.platform.issueKey().text, { ...chunked, end: '0\r\n\r\n' })
  expect(answer).toMatch(/^HTTP\/1.1 201/)
})

test.each([
  ['that is read', '/v1/echoes/a', () => gateway.platform.issueKey().text],
  ['that is thrown away', '/v1/nowhere', () => 'none'],
])('a long body %s, byte by byte, ends its connection at once', async (_, path, keyOf) => {
  const startedAt = performance.now()
  await post(path, keyOf(), { length: 200_000, chunkBytes: 1, end: '' })
  expect(performance.now() - startedAt).toBeLessThan(3_000)
})
