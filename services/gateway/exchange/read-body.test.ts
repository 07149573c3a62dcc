import { EventEmitter } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { PassThrough } from 'node:stream'
import { toProblem } from '@app/shared/api/problem.ts'
import { until } from '@app/test/until.ts'
import { usedBytes } from '@app/test/used-bytes.ts'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createInFlight } from '../limits/in-flight.ts'
import { bodyTimeoutMs, hasBody, readBody } from './read-body.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }))
afterEach(() => void vi.useRealTimers())

/** A request whose body is written by the test. */
const incoming = () => Object.assign(new PassThrough(), { headers: {} })
const read = (raw: PassThrough & { headers: object }, inFlight = createInFlight()) =>
  readBody(raw as unknown as IncomingMessage, 1_000, inFlight, 'owner').catch(toProblem)

test('a body that does not arrive in time is refused, and holds nothing any more', async () => {
  const raw = incoming()
  const inFlight = createInFlight()
  const body = read(raw, inFlight)
  raw.write('{"a"')
  await until(() => expect(inFlight.bytes).toBe(4))
  vi.advanceTimersByTime(bodyTimeoutMs)
  expect(await body).toMatchObject({ failure: 'request_timeout', status: 408 })
  expect(inFlight.bytes).toBe(0)
  // What comes now is thrown away.
  raw.end(':1}')
  expect(inFlight.bytes).toBe(0)
})

test('a body whose client is gone already is refused at once, and no timer stays', async () => {
  const raw = incoming()
  raw.destroy()
  await new Promise((resolve) => raw.once('close', resolve))
  expect(await read(raw)).toMatchObject({ message: 'The request body ended early.' })
  expect(vi.getTimerCount()).toBe(0)
})

test('a body whose client goes away is refused, and holds nothing any more', async () => {
  const raw = incoming()
  const inFlight = createInFlight()
  const body = read(raw, inFlight)
  raw.write('{"a"')
  await until(() => expect(inFlight.bytes).toBe(4))
  raw.destroy()
  expect(await body).toMatchObject({ failure: 'invalid_field_value', message: 'The request body ended early.' })
  expect([inFlight.bytes, vi.getTimerCount()]).toEqual([0, 0])
})

test('a body in time is read and held until it is given back, and no timer stays', async () => {
  const raw = incoming()
  const inFlight = createInFlight()
  const body = read(raw, inFlight)
  const closed = new Promise((resolve) => raw.once('close', resolve))
  raw.end('{"a":1}')
  expect(String(await body)).toBe('{"a":1}')
  await closed
  expect([inFlight.bytes, vi.getTimerCount()]).toEqual([7, 0])
})

test('a body that says that it is too large is refused before it comes', async () => {
  const raw = Object.assign(incoming(), { headers: { 'content-length': '1001' } })
  expect(await read(raw)).toMatchObject({ failure: 'payload_too_large' })
})

test.each([
  [{}, false],
  [{ 'content-length': '0' }, false],
  [{ 'content-length': '1' }, true],
  [{ 'transfer-encoding': 'chunked' }, true],
])('whether a request brings a body is said by its headers: %o', (headers, has) => {
  expect(hasBody({ headers } as IncomingMessage)).toBe(has)
})

test('a body that is too large is refused, and no timer stays', async () => {
  const raw = incoming()
  const body = read(raw)
  raw.end('x'.repeat(1_001))
  expect(await body).toMatchObject({ failure: 'payload_too_large' })
  expect(vi.getTimerCount()).toBe(0)
})

test('a body in tiny pieces takes no more room than its bytes', async () => {
  const raw = new EventEmitter() as IncomingMessage
  Object.assign(raw, { headers: {}, resume: () => raw })
  const count = 200_000
  const before = usedBytes()
  const body = readBody(raw, count, createInFlight(), 'owner')
  for (let n = 0; n < count; n++) raw.emit('data', Buffer.from([n % 256]))
  expect(usedBytes() - before).toBeLessThan(4 * 1024 * 1024)
  raw.emit('end')
  expect((await body).equals(Buffer.from(Array.from({ length: count }, (_, n) => n % 256)))).toBe(true)
})
