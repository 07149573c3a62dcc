import { beforeAll, describe, expect, inject, test } from 'vitest'
import type { Json } from '../journeys/client.ts'
import { newTenant, type Tenant } from '../journeys/tenant.ts'
import { openSocket, untilEnd } from './raw-http.ts'

const stack = inject('stack')
const { origin } = new URL(stack.base_url)
let tenant: Tenant
beforeAll(async () => {
  tenant = await newTenant('--tier', 'unlimited')
})

interface Answer {
  status: number
  body: string
}

/** The answers in what came over a connection; their bodies have a known length. */
function answersIn(text: string, isHead = false): Answer[] {
  const answers: Answer[] = []
  let rest = text
  while (rest !== '') {
    const end = rest.indexOf('\r\n\r\n')
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(rest)?.[1])
    if (end === -1 || Number.isNaN(status)) throw new Error(`no answer: ${rest.slice(0, 200)}`)
    const headers = rest.slice(0, end)
    const length = isHead || status === 100 ? 0 : Number(/content-length: (\d+)/i.exec(headers)?.[1] ?? 0)
    answers.push({ status, body: rest.slice(end + 4, end + 4 + length) })
    rest = rest.slice(end + 4 + length)
  }
  return answers
}

/** Writes the bytes and reads until the connection ends; nobody ends it but the gateway, or `Connection: close`. */
async function exchange(bytes: string, isHead = false): Promise<Answer[]> {
  const socket = await openSocket(origin)
  const end = untilEnd(socket, 45_000)
  socket.write(Buffer.from(bytes, 'latin1'))
  const text = await end
  expect(text, 'the connection is left open').not.toBeNull()
  return answersIn(text ?? '', isHead)
}

const close = 'Connection: close\r\n'
const withKey = () => `Host: x\r\nAuthorization: Bearer ${tenant.key}\r\n`
const post = (headers: string, body: string) => () =>
  `POST /v1/labels HTTP/1.1\r\n${withKey()}Content-Type: application/json\r\n${close}${headers}\r\n${body}`
const get =
  (target: string, headers = '') =>
  () =>
    `GET ${target} HTTP/1.1\r\n${withKey()}${close}${headers}\r\n`

/** Bytes, and the statuses that an answer may have; none: the connection may end without one. */
const cases: [what: string, bytes: () => string, statuses: number[]][] = [
  ['nonsense', () => 'nonsense\r\n\r\n', [400]],
  ['TLS', () => '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', [400]],
  ['the preface of HTTP/2', () => 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', [400]],
  ['HTTP/0.9', () => 'GET /v1/me\r\n\r\n', [400, 401]],
  ['HTTP/1.0', () => `GET /v1/me HTTP/1.0\r\n${withKey()}\r\n`, [200]],
  ['no Host', () => `GET /v1/me HTTP/1.1\r\nAuthorization: Bearer ${tenant.key}\r\n${close}\r\n`, [200]],
  ['two Hosts', get('/v1/me', 'Host: y\r\n'), [200, 400]],
  ['an absolute target', get('http://elsewhere.example/v1/me'), [200, 400, 404]],
  ['an asterisk', () => `OPTIONS * HTTP/1.1\r\n${withKey()}${close}\r\n`, [404]],
  ['CONNECT', () => `CONNECT 127.0.0.1:22 HTTP/1.1\r\n${withKey()}${close}\r\n`, []],
  ['TRACE', () => `TRACE /v1/me HTTP/1.1\r\n${withKey()}${close}\r\n`, [404]],
  ['OPTIONS', () => `OPTIONS /v1/me HTTP/1.1\r\n${withKey()}${close}\r\n`, [404]],
  ['PUT', () => `PUT /v1/me HTTP/1.1\r\n${withKey()}${close}Content-Length: 0\r\n\r\n`, [404]],
  ['a method of nobody', () => `BREW /v1/me HTTP/1.1\r\n${withKey()}${close}\r\n`, [400]],
  ['an upgrade', get('/v1/me', 'Upgrade: websocket\r\nSec-WebSocket-Key: x\r\n'), [200]],
  ['an expectation', post('Expect: 100-continue\r\nContent-Length: 2\r\n', '{}'), [100, 400]],
  ['an unknown expectation', post('Expect: miracles\r\nContent-Length: 2\r\n', '{}'), [400]],
  ['a space before the colon', get('/v1/me', 'X-Odd : 1\r\n'), [400]],
  ['a folded header', get('/v1/me', 'X-Odd: 1\r\n 2\r\n'), [200, 400]],
  ['U+0000 in a header', get('/v1/me', 'X-Odd: a\0b\r\n'), [400]],
  ['bytes beyond ASCII in a header', get('/v1/me', 'X-Odd: \xff\xfe\r\n'), [200]],
  ['bytes beyond ASCII in the target', get('/v1/labels/\xff\xfe'), [400, 404]],
  ['a space in the target', get('/v1/labels/a b'), [400]],
  ['a target without a slash', get('v1/me'), [400, 404]],
  ['two slashes', get('//v1//me'), [404]],
  ['dots', get('/v1/labels/../me'), [404]],
  ['encoded dots', get('/v1/labels/%2e%2e/me'), [404]],
  ['an encoded slash', get('/v1/labels%2Fx'), [404]],
  ['a fragment', get('/v1/me#x'), [200, 404]],
  ['another case', get('/V1/Me'), [404]],
  ['a slash at the end', get('/v1/me/'), [404]],
  ['semicolons', get('/v1/me;a=b'), [404]],
  ['a long target', get(`/v1/labels/${'x'.repeat(9_000)}`), [414]],
  ['a longer target', get(`/v1/labels/${'x'.repeat(60_000)}`), [414, 431]],
  ['a large header', get('/v1/me', `X-Large: ${'x'.repeat(60_000)}\r\n`), [431]],
  ['3,000 headers', get('/v1/me', Array.from({ length: 3_000 }, (_, n) => `X-${n}: 1\r\n`).join('')), [200, 431]],
  ['300 query parameters', get(`/v1/labels?${Array.from({ length: 300 }, (_, n) => `a${n}=1`).join('&')}`), [200]],
  ['two lengths', post('Content-Length: 2\r\nContent-Length: 3\r\n', '{}x'), [400]],
  ['a length and chunks', post('Content-Length: 2\r\nTransfer-Encoding: chunked\r\n', '2\r\n{}\r\n0\r\n\r\n'), [400]],
  ['a negative length', post('Content-Length: -1\r\n', '{}'), [400]],
  ['a length that is no number', post('Content-Length: two\r\n', '{}'), [400]],
  ['a length beyond all', post('Content-Length: 99999999999999999999\r\n', '{}'), [400, 413]],
  ['a length of 1 TB', post('Content-Length: 1099511627776\r\n', '{}'), [413]],
  ['another encoding of the transfer', post('Transfer-Encoding: gzip\r\n', '{}'), [400, 501]],
  ['chunks of a size that is none', post('Transfer-Encoding: chunked\r\n', 'zz\r\n{}\r\n0\r\n\r\n'), [400]],
  ['chunks in the right way', post('Transfer-Encoding: chunked\r\n', '2\r\n{}\r\n0\r\n\r\n'), [400]],
  ['300 KB in chunks', post('Transfer-Encoding: chunked\r\n', `${'2000\r\n'}${'x'.repeat(8192)}\r\n`.repeat(40) + '0\r\n\r\n'), [413]],
  ['a compressed body', post('Content-Encoding: gzip\r\nContent-Length: 2\r\n', '{}'), [400, 415]],
  ['a GET with a body', () => `GET /v1/me HTTP/1.1\r\n${withKey()}${close}Content-Length: 2\r\n\r\n{}`, [200]],
  ['a DELETE with a body', () => `DELETE /v1/labels/x HTTP/1.1\r\n${withKey()}${close}Content-Length: 2\r\n\r\n{}`, [404]],
] // prettier-ignore

describe.concurrent('bytes that no client should send have an envelope or a clean end', () => {
  test.each(cases)('%s', { timeout: 60_000 }, async (_what, bytes, statuses) => {
    for (const { status, body } of await exchange(bytes())) {
      expect(statuses, body).toContain(status)
      if (status < 400) continue
      const { error } = JSON.parse(body) as Json
      expect(error).toMatchObject({ type: expect.any(String), code: expect.any(String), message: expect.any(String) })
      expect(error.request_id).toMatch(/^req_[0-9A-Z]{26}$/)
    }
    expect((await exchange(get('/v1/me')())).map(({ status }) => status)).toEqual([200])
  })

  test('HEAD has no body, and what stands behind it is another request', async () => {
    const bytes = `HEAD /v1/me HTTP/1.1\r\n${withKey()}${close}\r\n`
    expect(await exchange(bytes, true)).toEqual([{ status: 404, body: '' }])
  })

  test('requests in one go are answered in order, each by itself', async () => {
    const one = (path: string, last = '') => `GET ${path} HTTP/1.1\r\n${withKey()}${last}\r\n`
    const bytes = one('/v1/me') + one('/v1/labels/nonsense') + one('/v1/labels?limit=0') + one('/v1/me', close)
    const answers = await exchange(bytes)
    expect(answers.map(({ status }) => status)).toEqual([200, 404, 400, 200])
    expect(new Set(answers.map(({ body }) => /req_\w{26}/.exec(body)?.[0])).size).toBe(4)
  })

  test('a request behind a refused body is not taken for a part of it, nor the other way round', async () => {
    const smuggled = `GET /v1/me HTTP/1.1\r\n${withKey()}\r\n`
    const bytes = `POST /v1/labels HTTP/1.1\r\n${withKey()}Content-Type: text/plain\r\nContent-Length: ${smuggled.length}\r\n${close}\r\n${smuggled}`
    expect((await exchange(bytes)).map(({ status }) => status)).toEqual([415])
  })

  test('a client that ends its half in the middle is answered or let go', async () => {
    for (const part of [
      'GET /v1/me HTT',
      `GET /v1/me HTTP/1.1\r\n${withKey()}`,
      post('Content-Length: 20\r\n', '{"na')(),
    ]) {
      const socket = await openSocket(origin)
      const end = untilEnd(socket, 10_000)
      socket.end(part)
      const text = await end
      expect(text).not.toBeNull()
      for (const { status } of answersIn(text ?? '')) expect(status).toBe(400)
    }
  })
})

/** Fields that keep whatever they are given, and a number that JSON cannot say. */
const metadata: [what: string, json: string, kept: Json][] = [
  ['minus zero', '{"a":-0}', { a: 0 }],
  ['1e400', '{"a":1e400}', undefined],
  ['20 digits', '{"a":12345678901234567890}', { a: Number('12345678901234567890') }],
  ['1e-400', '{"a":1e-400}', { a: 0 }],
  ['a key twice', '{"a":1,"a":2}', { a: 2 }],
  ['__proto__', '{"__proto__":{"x":1},"a":1}', { a: 1 }],
  ['an empty key', '{"":{"":[]}}', { '': { '': [] } }],
  ['30 levels', `{"a":${'['.repeat(29)}${']'.repeat(29)}}`, JSON.parse(`{"a":${'['.repeat(29)}${']'.repeat(29)}}`)],
]

test.each(metadata)('metadata with %s is kept or refused; the same again is no change', async (_what, json, kept) => {
  const { id } = await tenant.ok('POST', '/customers', { name: 'Metadata' })
  const patch = () => tenant.call('PATCH', `/customers/${id}`, `{"metadata":${json}}`)
  const first = await patch()
  if (kept === undefined) {
    expect(first).toMatchObject({ status: 400, body: { error: { code: 'invalid_field_value' } } })
    return
  }
  expect(first).toMatchObject({ status: 200, body: { data: { metadata: kept } } })
  expect((await patch()).body.data).toEqual(first.body.data)
})
