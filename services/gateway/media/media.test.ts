import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Input } from '@app/shared/api/contract.ts'
import { findMedia, openUpload, uploadMedia } from '@app/shared/contracts/media.ts'
import { newId } from '@app/shared/values/ids.ts'
import { notFound } from '@app/shared/api/problem.ts'
import { serve, type Serving } from '@app/shared/bus/rpc.ts'
import { newFileKey } from '@app/shared/store/store.ts'
import { png } from '@app/test/png.ts'
import { usedBytes } from '@app/test/used-bytes.ts'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { startTestGateway, type TestGateway } from '../testing/gateway.ts'
import { logLines } from '../testing/log-lines.ts'

let gateway: TestGateway
let messaging: Serving
const uploads: Input<typeof uploadMedia>['body'][] = []
interface StoredFile {
  organization_id?: string
  mime_type: string
  filename: string | null
  bytes: Buffer
  file_key: string
}
const files = new Map<string, StoredFile>()
const phone = '106540352242922'
let key: string

beforeAll(async () => {
  gateway = await startTestGateway()
  const issued = gateway.platform.issueKey()
  key = issued.text
  gateway.platform.accounts.add(`${issued.organizationId}:${phone}`)
  messaging = await serve(
    { ...gateway.peer, name: 'messaging' },
    { openUpload, uploadMedia, findMedia },
    {
      openUpload: () => Promise.resolve({ file_key: newFileKey() }),
      uploadMedia(_app, { body }) {
        uploads.push(body)
        const { mime_type, size, sha256 } = body
        const expires_at = new Date().toISOString()
        return Promise.resolve({ id: newId('med'), object: 'media', mime_type, size, sha256, expires_at })
      },
      findMedia(_app, { params }) {
        const file = files.get(params.opaque)
        if (!file) throw notFound()
        const { bytes, ...rest } = file
        return Promise.resolve({ ...rest, size: bytes.length, sha256: hashOf(bytes) })
      },
    },
  )
})
afterAll(async () => {
  await messaging.stop()
  await gateway.close()
})
beforeEach(() => {
  uploads.length = 0
})

const hashOf = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')

interface Part {
  bytes: Buffer
  /** None: null. */
  type?: string | null
  filename?: string | null
  /** The field `type`. */
  said?: string
  /** What stands behind it. */
  tail?: string
}

function formOf({ bytes, type = 'image/png', filename = 'a.png', said, tail = '--xxBOUNDARYxx--\r\n' }: Part) {
  const boundary = 'xxBOUNDARYxx'
  const head =
    (said === undefined ? '' : `--${boundary}\r\nContent-Disposition: form-data; name="type"\r\n\r\n${said}\r\n`) +
    `--${boundary}\r\nContent-Disposition: form-data; name="file"${filename === null ? '' : `; filename="${filename}"`}\r\n` +
    `${type === null ? '' : `Content-Type: ${type}\r\n`}\r\n`
  const body = Buffer.concat([Buffer.from(head), bytes, Buffer.from(`\r\n${tail}`)])
  return { body, headers: { 'content-type': `multipart/form-data; boundary=${boundary}` } }
}

const upload = (part: Part, headers = {}) => {
  const { body, headers: own } = formOf(part)
  return gateway.ask(`/v1/${phone}/media`, { key, body, headers: { ...own, ...headers } })
}

/** An upload whose body the test writes by itself. */
function begin(apiKey: string, part: Part, more: Record<string, string> = {}) {
  const { body, headers } = formOf(part)
  const socket = connect(Number(new URL(gateway.url).port), '127.0.0.1')
  let answer = ''
  socket.on('data', (chunk: Buffer) => (answer += chunk.toString()))
  const lines = Object.entries({
    ...headers,
    ...more,
    'content-length': body.length,
    authorization: `Bearer ${apiKey}`,
  })
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')
  socket.write(`POST /v1/${phone}/media HTTP/1.1\r\nhost: x\r\n${head}\r\n`)
  return { socket, body, answer: () => answer }
}

/** Everything that lies in the store. */
const stored = () =>
  readdirSync(gateway.mediaDir, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())

describe('an upload', () => {
  test('puts the bytes into the store and tells messaging where', async () => {
    const bytes = png(200_000)
    const { status, json } = await upload({ bytes, filename: '../receipt "1".png' })
    expect([status, json()]).toMatchObject([201, { data: { object: 'media', mime_type: 'image/png' } }])
    expect(json().request_id).toMatch(/^req_/)
    const [told] = uploads
    expect(told).toMatchObject({ mime_type: 'image/png', size: bytes.length, sha256: hashOf(bytes) })
    const opened = await gateway.app.store.open(told?.file_key ?? '')
    expect(Buffer.concat((await opened?.toArray()) ?? []).equals(bytes)).toBe(true)
  })

  const webp = Buffer.concat([Buffer.from('RIFF\x20\0\0\0WEBPVP8 ', 'latin1'), randomBytes(100)])
  test.each<[string, Part]>([
    ['WebP', { bytes: webp, type: 'image/webp' }],
    ['WebP that says it is JPEG', { bytes: webp, type: 'image/jpeg' }],
    ['PNG that says it is JPEG', { bytes: png(10), type: 'image/jpeg' }],
    ['a page', { bytes: Buffer.from('<!doctype html><script>alert(1)</script>'), type: 'text/html' }],
    ['a program', { bytes: Buffer.from('MZ\x90\0'.padEnd(200, '\0'), 'latin1'), type: 'application/pdf' }],
    ['nothing', { bytes: Buffer.alloc(0) }],
    ['an image over 5 MB', { bytes: png(5 * 1024 * 1024) }],
  ])('of %s is refused, and nothing is stored', async (_name, part) => {
    const before = stored().length
    const { status, json } = await upload(part)
    expect([status, json().error]).toMatchObject([422, { code: 'media_upload_failed', param: 'file' }])
    expect(uploads).toEqual([])
    expect(stored()).toHaveLength(before)
  })

  test.each([
    ['type', { type: null, said: 'nonsense' }],
    ['type', { type: 'application/octet-stream', said: 'text/html' }],
    ['type', { type: 'text/plain', said: 'nonsense' }],
    ['file', { type: null, said: 'image/jpeg' }],
    ['file', { type: null, said: '' }],
    ['file', { type: 'text/html', said: 'image/png' }],
  ])('is refused for its %s, where that is wrong: %j', async (param, told) => {
    const bytes = told.said === '' ? Buffer.alloc(10) : png(10)
    const { status, json } = await upload({ bytes, ...told })
    expect([status, json().error]).toMatchObject([422, { code: 'media_upload_failed', param }])
  })

  test('of an image of 5 MB is taken', async () => {
    expect((await upload({ bytes: png(5 * 1024 * 1024 - png(0).length) })).status).toBe(201)
    expect((await upload({ bytes: png(5 * 1024 * 1024 - png(0).length + 1) })).status).not.toBe(201)
  })

  test('over 100 MB is refused before it is read', async () => {
    const { headers } = formOf({ bytes: Buffer.alloc(0) })
    const { status, json } = await rawUpload(
      `Content-Length: ${101 * 1024 * 1024}\r\nContent-Type: ${headers['content-type']}`,
    )
    expect([status, json.error.code]).toEqual([413, 'payload_too_large'])
    // Its form may be as large as that, and something more.
    const largest = await rawUpload(`Content-Length: ${100 * 1024 * 1024 + 1_000}\r\nContent-Type: application/json`)
    expect(largest.status).toBe(415)
  })

  test('that breaks off leaves nothing behind', async () => {
    const before = stored().length
    const { socket, body } = begin(key, { bytes: png(1_000_000) })
    socket.write(body.subarray(0, 500_000))
    await expect.poll(() => stored().length).toBe(before + 1)
    socket.destroy()
    await expect.poll(() => stored().length).toBe(before)
    expect(uploads).toEqual([])
  })

  test.each(['file begins', 'bytes end'])(
    'whose %s long after its request, from a slow client, is taken',
    async (late) => {
      const { accounts, store } = gateway.app
      const [{ require }, { put }] = [accounts, store]
      // As if all its time had passed until then.
      let passTime = () => {}
      const admitted = vi.spyOn(accounts, 'require').mockImplementationOnce(async (exchange, id) => {
        await require(exchange, id)
        passTime = () => (exchange.deadline = performance.now())
        if (late === 'file begins') passTime()
      })
      const keeping = vi.spyOn(store, 'put').mockImplementationOnce(async (...given) => {
        const kept = await put(...given)
        if (late === 'bytes end') passTime()
        return kept
      })
      expect((await upload({ bytes: png(1_000) })).status).toBe(201)
      admitted.mockRestore()
      keeping.mockRestore()
    },
  )

  test('whose key is revoked while its bytes come is refused, and is no file', async () => {
    const issued = gateway.platform.issueKey()
    gateway.platform.accounts.add(`${issued.organizationId}:${phone}`)
    const looked = gateway.platform.lookUps.keys
    const { socket, body, answer } = begin(issued.text, { bytes: png(1_000) })
    socket.write(body.subarray(0, 500))
    await expect.poll(() => gateway.platform.lookUps.keys).toBeGreaterThan(looked)
    issued.state = 'revoked'
    // As long as what is known of a key counts.
    await sleep(2_000)
    socket.write(body.subarray(500))
    await expect.poll(answer).toContain('revoked_api_key')
    expect(uploads).toEqual([])
    socket.destroy()
  })

  test('whose client goes away before it is let in takes no turn for good', async () => {
    const connections = () =>
      new Promise<number>((done) => void gateway.http.server.getConnections((_err, count) => done(count)))
    const [lookedUp, others] = [gateway.platform.lookUps.keys, await connections()]
    const { promise, resolve } = Promise.withResolvers<void>()
    gateway.platform.delay = () => promise
    const { text, organizationId } = gateway.platform.issueKey()
    gateway.platform.accounts.add(`${organizationId}:${phone}`)
    const { body, headers } = formOf({ bytes: png(100_000) })
    const head =
      `POST /v1/${phone}/media HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${text}\r\n` +
      `Content-Type: ${headers['content-type']}\r\nContent-Length: ${body.length}\r\n\r\n`
    const sockets = Array.from({ length: 8 }, () => connect(Number(new URL(gateway.url).port), '127.0.0.1'))
    for (const socket of sockets) socket.write(head)
    await expect.poll(() => gateway.platform.lookUps.keys).toBe(lookedUp + 1)
    for (const socket of sockets) socket.destroy()
    await expect.poll(connections).toBeLessThanOrEqual(others)
    gateway.platform.delay = () => Promise.resolve()
    resolve()
    const asked = () => gateway.platform.apiCalls.filter(({ organization_id: id }) => id === organizationId)
    await expect.poll(() => asked().map(({ status }) => status), { timeout: 2_000 }).toEqual(Array(8).fill('400'))
    expect((await gateway.ask(`/v1/${phone}/media`, { key: text, body, headers })).status).toBe(201)
  })

  test('whose client goes away before its file begins takes no turn for good', async () => {
    const { text, organizationId } = gateway.platform.issueKey()
    gateway.platform.accounts.add(`${organizationId}:${phone}`)
    const looked = gateway.platform.lookUps.accounts
    const { socket, body } = begin(text, { bytes: png(10) })
    socket.write(body.subarray(0, 20))
    await expect.poll(() => gateway.platform.lookUps.accounts).toBe(looked + 1)
    socket.destroy()
    const statuses = () =>
      gateway.platform.apiCalls.filter((one) => one.organization_id === organizationId).map((one) => one.status)
    await expect.poll(statuses).toEqual(['400'])
  })

  test('with the key of one that is under way is a 409 at once', async () => {
    const before = stored().length
    const [bytes, again] = [png(200_000), { 'idempotency-key': 'the same' }]
    const first = begin(key, { bytes }, again)
    first.socket.write(first.body.subarray(0, 100_000))
    await expect.poll(() => stored().length).toBe(before + 1)
    const double = await upload({ bytes }, again)
    expect([double.status, double.json().error?.code]).toEqual([409, 'idempotency_in_progress'])
    first.socket.write(first.body.subarray(100_000))
    await expect.poll(first.answer).toContain('201 Created')
    expect(uploads).toHaveLength(1)
    first.socket.destroy()
    expect((await upload({ bytes }, again)).status).toBe(201)
  })

  test('beyond the eight of an organization is a 503, and those of others go on', async () => {
    const { text, organizationId } = gateway.platform.issueKey()
    gateway.platform.accounts.add(`${organizationId}:${phone}`)
    const before = stored().length
    const slow = Array.from({ length: 8 }, () => begin(text, { bytes: png(200_000) }))
    for (const { socket, body } of slow) socket.write(body.subarray(0, 100_000))
    await expect.poll(() => stored().length).toBe(before + 8)
    const { body, headers } = formOf({ bytes: png(10) })
    expect((await gateway.ask(`/v1/${phone}/media`, { key: text, body, headers })).status).toBe(503)
    expect((await upload({ bytes: png(10) })).status).toBe(201)
    for (const { socket } of slow) socket.destroy()
    await expect.poll(() => stored().length).toBe(before + 1)
  })

  test('that is refused unread leaves its connection to the next request, or says that it ends', async () => {
    const { socket, body, answer } = begin(key, { bytes: png(2_000_000), type: 'image/webp' })
    socket.write(body)
    socket.write(`GET /v1/me HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n\r\n`)
    await expect.poll(answer).toMatch(/^HTTP\/1\.1 422 [^]*(\r\nConnection: close\r\n|HTTP\/1\.1 200 )/)
    socket.destroy()
  })

  test('that is refused unread is thrown away as it comes', async () => {
    const { socket, body, answer } = begin(key, { bytes: png(50_000_000), type: 'image/webp' })
    const before = usedBytes()
    await new Promise((written) => socket.write(body.subarray(0, -1), written))
    // What is garbage may be given back a moment later.
    await expect.poll(() => usedBytes() - before).toBeLessThan(10_000_000)
    socket.write(body.subarray(-1))
    await expect.poll(answer).toContain(' 422 ')
    socket.destroy()
  })

  test('needs a key and a number of the organization, as everything does', async () => {
    const { body, headers } = formOf({ bytes: png(10) })
    expect((await gateway.ask(`/v1/${phone}/media`, { body, headers })).status).toBe(401)
    expect((await gateway.ask('/v1/999999999999/media', { key, body, headers })).status).toBe(404)
  })
})

test('an upload whose client asks first is sent once its key and its number are known', async () => {
  const asking = { expect: '100-continue', connection: 'close' }
  const taken = begin(key, { bytes: png(1_000) }, asking)
  await expect.poll(taken.answer).toBe('HTTP/1.1 100 Continue\r\n\r\n')
  taken.socket.write(taken.body)
  await expect.poll(taken.answer).toContain('\r\n\r\nHTTP/1.1 201 Created\r\n')
  const refused = begin('svc_live_of_nobody', { bytes: png(1_000) }, asking)
  await expect.poll(refused.answer).toMatch(/^HTTP\/1\.1 401 [^]*\r\nConnection: close\r\n[^]*invalid_api_key/)
  refused.socket.destroy()
})

describe('the form of an upload', () => {
  test('takes the type from the field when the part says none, and from the bytes when neither does', async () => {
    const bytes = Buffer.from('Hello, this is text.')
    expect((await upload({ bytes, type: 'application/octet-stream', said: 'text/plain' })).status).toBe(201)
    expect((await upload({ bytes: png(10), type: 'application/octet-stream' })).status).toBe(201)
    expect(uploads.map(({ mime_type }) => mime_type)).toEqual(['text/plain', 'image/png'])
  })

  test('takes the type of the part before that of the field', async () => {
    const bytes = Buffer.from('Hello, this is text.')
    expect((await upload({ bytes, type: 'text/plain', said: 'application/pdf' })).status).toBe(201)
    expect(uploads.map(({ mime_type }) => mime_type)).toEqual(['text/plain'])
    expect((await upload({ bytes, type: 'Application/Octet-Stream', said: 'application/pdf' })).status).toBe(422)
  })

  test('takes the type from the field, or from the bytes, when the part has no line for it', async () => {
    const pdf = Buffer.concat([Buffer.from('%PDF-1.7\n'), randomBytes(100)])
    expect((await upload({ bytes: pdf, type: null, said: 'application/pdf' })).status).toBe(201)
    expect((await upload({ bytes: png(10), type: null })).status).toBe(201)
    expect((await upload({ bytes: Buffer.from('Hello, this is text.'), type: null })).status).toBe(201)
    expect(uploads.map(({ mime_type }) => mime_type)).toEqual(['application/pdf', 'image/png', 'text/plain'])
    const refused = await upload({ bytes: pdf, type: null, said: 'image/png' })
    const message = 'The file is not image/png, as its Content-Type says: it is application/pdf.'
    expect([refused.status, refused.json()]).toMatchObject([422, { error: { param: 'file', message } }])
  })

  test.each([
    ['a.png', 'a.png'],
    [' Grüße.png ', 'Grüße.png'],
    ['../../etc/passwd', 'passwd'],
    ['a\u0001\tb\u0085.png', 'ab.png'],
    ['/', null],
    [`${'x'.repeat(300)}.png`, 'x'.repeat(255)],
    [`${'x'.repeat(254)}😀.png`, `${'x'.repeat(254)}\uFFFD`],
  ])('with the filename %j is named %j', async (filename, named) => {
    expect((await upload({ bytes: png(10), filename })).status).toBe(201)
    expect(uploads).toMatchObject([{ filename: named }])
  })

  test('without a filename is a file, too, also of another name with bytes of an unknown type', async () => {
    expect((await upload({ bytes: png(10), filename: null })).status).toBe(201)
    const { body, headers } = formOf({ bytes: png(10), type: 'application/octet-stream', filename: null })
    const other = Buffer.from(body.toString('latin1').replace('name="file"', 'name="upload"'), 'latin1')
    expect((await gateway.ask(`/v1/${phone}/media`, { key, body: other, headers })).status).toBe(201)
    expect(uploads).toMatchObject([{ filename: null }, { filename: null }])
  })

  test.each([
    ['JSON', { 'content-type': 'application/json' }, 415, 'unsupported_media_type'],
    ['a compressed form', { 'content-encoding': 'gzip' }, 415, 'unsupported_media_type'],
    ['a form without a boundary', { 'content-type': 'multipart/form-data' }, 415, 'unsupported_media_type'],
    [
      'a form that names something else',
      { 'content-type': 'multipart/form-data; charset=utf-8' },
      400,
      'invalid_field_value',
    ],
    ['a form with an empty boundary', { 'content-type': 'multipart/form-data; boundary=' }, 400, 'invalid_field_value'],
    ['another boundary', { 'content-type': 'multipart/form-data; boundary=other' }, 400, 'invalid_field_value'],
  ])('as %s is refused', async (_name, headers, status, code) => {
    const answer = await upload({ bytes: png(10) }, headers)
    expect([answer.status, answer.json().error?.code]).toEqual([status, code])
  })

  test('says that it is a form in any case of letters, and nothing else', async () => {
    const said = (type: string) => upload({ bytes: png(10) }, { 'content-type': `${type}; boundary=xxBOUNDARYxx` })
    expect((await said('Multipart/Form-Data')).status).toBe(201)
    expect((await said('x-multipart/form-data')).status).toBe(415)
  })

  test('is not looked for behind more fields than a form of ours has', async () => {
    const { body, headers } = formOf({ bytes: png(10) })
    const field = '--xxBOUNDARYxx\r\nContent-Disposition: form-data; name="x"\r\n\r\n1\r\n'
    const ask = (count: number) =>
      gateway.ask(`/v1/${phone}/media`, { key, body: Buffer.concat([Buffer.from(field.repeat(count)), body]), headers })
    expect((await ask(16)).status).toBe(201)
    const { status, json } = await ask(20)
    expect([status, json().error]).toMatchObject([400, { code: 'invalid_field_value', param: 'file' }])
  })

  test.each([0, 100, 70_000, 1_000_000])('whose form ends after %i bytes of its file is refused', async (size) => {
    const before = stored().length
    const { body, headers } = formOf({ bytes: png(size) })
    const cut = body.subarray(0, body.lastIndexOf('--xxBOUNDARYxx') - 2)
    const { status, json } = await gateway.ask(`/v1/${phone}/media`, { key, body: cut, headers })
    expect([status, json().error?.code]).toEqual([400, 'invalid_field_value'])
    await expect.poll(() => stored().length).toBe(before)
    expect(uploads).toEqual([])
  })

  test('whose form breaks off behind its file is refused', async () => {
    const keeping = vi.spyOn(gateway.app.store, 'put')
    const tail = '--xxBOUNDARYxx\r\nContent-Disposition: form-data; name="more"\r\n\r\nand so'
    const { socket, body, answer } = begin(key, { bytes: png(1_000), tail })
    socket.write(body.subarray(0, -1))
    await expect.poll(() => keeping.mock.settledResults.map(({ type }) => type)).toEqual(['fulfilled'])
    socket.write(body.subarray(-1))
    await expect.poll(answer).toContain('invalid_field_value')
    expect(uploads).toEqual([])
    socket.destroy()
    keeping.mockRestore()
  })

  test('takes the first file of its form, and throws away what follows', async () => {
    const head = '--xxBOUNDARYxx\r\nContent-Disposition: form-data; name="file"; filename="b.png"\r\n\r\n'
    const tail = `${head}${'x'.repeat(1_000_000)}\r\n--xxBOUNDARYxx--\r\n`
    expect((await upload({ bytes: png(10), tail })).status).toBe(201)
    expect(uploads).toMatchObject([{ filename: 'a.png' }])
  })
})

test('an upload of an organization goes on, however many others have slow ones under way', async () => {
  const before = stored().length
  const slow: ReturnType<typeof begin>[] = []
  for (let n = 0; n < 7; n++) {
    const { text, organizationId } = gateway.platform.issueKey()
    gateway.platform.accounts.add(`${organizationId}:${phone}`)
    slow.push(...Array.from({ length: 8 }, () => begin(text, { bytes: png(200_000) })))
  }
  for (const { socket, body } of slow) socket.write(body.subarray(0, 100_000))
  await expect.poll(() => slow.filter(({ answer }) => answer().includes(' 503 ')).length).toBe(slow.length - 32)
  await expect.poll(() => stored().length).toBe(before + 32)
  expect((await upload({ bytes: png(10) })).status).toBe(201)
  for (const { socket } of slow) socket.destroy()
  await expect.poll(() => stored().length).toBe(before + 1)
})

/** A request whose body never comes. */
async function rawUpload(headers: string) {
  const socket = connect(Number(new URL(gateway.url).port), '127.0.0.1')
  socket.write(`POST /v1/${phone}/media HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n${headers}\r\n\r\n`)
  let text = ''
  socket.on('data', (chunk) => (text += String(chunk)))
  await expect.poll(() => text).toContain('request_id')
  socket.destroy()
  return {
    status: Number(text.slice(9, 12)),
    json: JSON.parse(text.slice(text.indexOf('{'))) as { error: { code: string } },
  }
}

describe('a stored file', () => {
  const opaque = 'abcdefghijklmnopqrstuvwxyz012345'
  const bytes = Buffer.from('0123456789')

  async function keep(mime_type: string, filename: string | null = null) {
    const file_key = newFileKey()
    await gateway.app.store.put(
      file_key,
      (async function* () {
        yield bytes
      })(),
    )
    files.set(opaque, { mime_type, filename, bytes, file_key })
  }

  const get = (headers = {}, method: 'GET' | 'HEAD' = 'GET') => gateway.ask(`/media/${opaque}`, { headers, method })

  test('is served without a key, with the headers that keep it harmless', async () => {
    await keep('image/jpeg', "Grüße '(1)'.jpg")
    const answer = await get()
    expect([answer.status, String(answer.bytes)]).toEqual([200, '0123456789'])
    expect(answer.headers).toMatchObject({
      'content-type': 'image/jpeg',
      'content-length': '10',
      'content-disposition': "inline; filename*=UTF-8''Gr%C3%BC%C3%9Fe%20%27%281%29%27.jpg",
      'x-content-type-options': 'nosniff',
      'content-security-policy': 'sandbox',
      'referrer-policy': 'no-referrer',
      'x-robots-tag': 'noindex',
      'cache-control': 'private, max-age=86400',
      'accept-ranges': 'bytes',
      etag: `"${hashOf(bytes)}"`,
    })
    expect(answer.headers['x-request-id']).toBeUndefined()
  })

  test.each(['image/svg+xml', 'image/SVG+xml', 'text/html', 'application/pdf', 'text/plain'])(
    'of type %s is saved, not shown',
    async (type) => {
      await keep(type)
      expect((await get()).headers).toMatchObject({ 'content-type': type, 'content-disposition': 'attachment' })
    },
  )

  test.each(['image/PNG', 'Video/mp4', 'audio/ogg; codecs=opus'])('of type %s is shown', async (type) => {
    await keep(type)
    expect((await get()).headers).toMatchObject({ 'content-type': type, 'content-disposition': 'inline' })
  })

  test.each(['text/html, image/png', 'x-image/png x', ''])('of type %j is no type to anybody', async (type) => {
    await keep(type)
    const { headers } = await get()
    expect(headers).toMatchObject({ 'content-type': 'application/octet-stream', 'content-disposition': 'attachment' })
  })

  test('cannot smuggle in a header', async () => {
    await keep('text/html\r\nSet-Cookie: a=b')
    const { status, headers } = await get()
    expect([status, headers['content-type'], headers['set-cookie']]).toEqual([
      200,
      'application/octet-stream',
      undefined,
    ])
  })

  test('is served in parts', async () => {
    await keep('video/mp4')
    const part = await get({ range: 'bytes=2-4' })
    expect([part.status, String(part.bytes), part.headers['content-range'], part.headers['content-length']]).toEqual([
      206,
      '234',
      'bytes 2-4/10',
      '3',
    ])
    const beyond = await get({ range: 'bytes=10-' })
    expect(beyond).toMatchObject({ status: 416, headers: { 'content-range': 'bytes */10', 'content-length': '0' } })
    const same = await get({ range: 'bytes=2-4', 'if-range': `"${hashOf(bytes)}"` })
    expect([same.status, String(same.bytes)]).toEqual([206, '234'])
    const asked = await get({ range: 'bytes=2-4' }, 'HEAD')
    expect([asked.status, asked.headers['content-length'], asked.bytes.length]).toEqual([206, '3', 0])
    const changed = await get({ range: 'bytes=2-4', 'if-range': '"other"' })
    expect([changed.status, String(changed.bytes)]).toEqual([200, '0123456789'])
  })

  test('is not sent again to who has it, nor to HEAD', async () => {
    await keep('image/jpeg')
    for (const known of [`W/"${hashOf(bytes)}"`, `"other", "${hashOf(bytes)}"`, '*']) {
      const { status, headers } = await get({ 'if-none-match': known })
      expect([status, headers['etag'], headers['cache-control']]).toEqual([
        304,
        `"${hashOf(bytes)}"`,
        'private, max-age=86400',
      ])
    }
    expect((await get({ 'if-none-match': '"other"' })).status).toBe(200)
    const head = await get({}, 'HEAD')
    expect([head.status, head.headers['content-length'], head.bytes.length]).toEqual([200, '10', 0])
  })

  test.each(['/media/zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz', '/media/short', '/media/..%2f..%2fetc%2fpasswd'])(
    'is not found at %s',
    async (path) => {
      expect((await gateway.ask(path)).status).toBe(404)
    },
  )

  test('is closed again when its client has gone before it was opened', async () => {
    await keep('image/jpeg')
    const { open } = gateway.app.store
    const socket = connect(Number(new URL(gateway.url).port), '127.0.0.1')
    const [peer] = (await once(gateway.http.server, 'connection')) as [Socket]
    let opened: Readable | null = null
    const opening = vi.spyOn(gateway.app.store, 'open').mockImplementation(async (...asked) => {
      socket.destroy()
      await once(peer, 'close')
      opened = await open(...asked)
      return opened
    })
    socket.write(`GET /media/${opaque} HTTP/1.1\r\nHost: x\r\n\r\n`)
    await expect.poll(() => opened?.destroyed).toBe(true)
    opening.mockRestore()
  })

  test('is counted as of its organization while it leaves, and is a 503 beyond what that may hold', async () => {
    const { inFlight, store } = gateway.app
    const open = store.open
    const file_key = newFileKey()
    const bytes = randomBytes(1024 * 1024)
    await store.put(file_key, Readable.from([bytes]))
    const large = { mime_type: 'video/mp4', filename: null, bytes, file_key }
    files.set(opaque, { ...large, organization_id: 'org_1' })
    const held: number[] = []
    const opening = vi.spyOn(store, 'open').mockImplementation((...asked) => {
      held.push(inFlight.bytes)
      return open(...asked)
    })
    expect((await get()).status).toBe(200)
    await expect.poll(() => inFlight.bytes).toBe(0)
    expect((await get({ range: 'bytes=1-10' })).status).toBe(206)
    await expect.poll(() => inFlight.bytes).toBe(0)
    expect(held).toEqual([512 * 1024, 10])
    opening.mockRestore()

    const share = 128 * 1024 * 1024
    inFlight.hold('files of org_1', share - 1)
    expect((await get()).status).toBe(503)
    inFlight.hold('org_1', 1)
    files.set(opaque, { ...large, organization_id: 'org_2' })
    expect((await get()).status).toBe(200)
    inFlight.hold('org_1', -1)
    inFlight.hold('files of org_1', 1 - share)
  })

  test('that is asked for with a body, or while the gateway stops, is the last answer of its connection', async () => {
    await keep('image/jpeg')
    const { status, headers } = await gateway.ask(`/media/${opaque}`, { method: 'GET', body: 'x' })
    expect([status, headers['connection']]).toEqual([200, 'close'])
    vi.spyOn(gateway.app, 'isStopping').mockReturnValueOnce(true)
    expect((await get()).headers['connection']).toBe('close')
  })

  test('is a 503 while too many requests are in work', async () => {
    await keep('image/jpeg')
    gateway.app.inFlight.count += 4_096
    const { status, headers } = await get()
    gateway.app.inFlight.count -= 4_096
    expect([status, headers['retry-after']]).toEqual([503, '1'])
  })

  test('that is lost is no broken answer, and is told of', async () => {
    await keep('image/jpeg')
    await gateway.app.store.delete(files.get(opaque)?.file_key ?? '')
    const lines = logLines(gateway.app)
    expect((await get()).status).toBe(503)
    expect(lines).toContainEqual(expect.objectContaining({ level: 'warn', msg: 'media', err: expect.any(Error) }))
    expect((await gateway.ask('/media/short')).status).toBe(404)
    expect(lines.filter((line) => 'err' in line)).toHaveLength(1)
    vi.restoreAllMocks()
  })

  test('of which the store gives a part alone is not taken for a whole one', async () => {
    await keep('image/jpeg')
    async function* half() {
      yield bytes.subarray(0, 5)
      await sleep(10)
      throw new Error('the store broke off')
    }
    vi.spyOn(gateway.app.store, 'open').mockResolvedValueOnce(Readable.from(half()))
    await expect(get()).rejects.toThrow('other side closed')
    vi.restoreAllMocks()
  })

  test('that is empty is served as that', async () => {
    const file_key = newFileKey()
    files.set(opaque, { mime_type: 'text/plain', filename: null, bytes: Buffer.alloc(0), file_key })
    const { status, headers } = await get()
    expect([status, headers['content-length']]).toEqual([200, '0'])
  })
})

test('nothing unfinished is left', () => {
  expect(readdirSync(join(gateway.mediaDir, '.unfinished'))).toEqual([])
})
