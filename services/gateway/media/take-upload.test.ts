import { randomBytes } from 'node:crypto'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { png } from '@app/test/png.ts'
import { usedBytes } from '@app/test/used-bytes.ts'
import { beforeAll, describe, expect, test, vi } from 'vitest'
import type { TestGateway } from '../testing/gateway.ts'
import { formOf, gatewayWithUploads, hashOf, type Part, phone } from '../testing/uploads.ts'

const it = gatewayWithUploads()
const { uploads, upload, begin, stored, unfinished } = it
let gateway: TestGateway
let key: string
beforeAll(() => void ({ gateway, key } = it))

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

test('nothing unfinished is left', () => {
  expect(unfinished()).toEqual([])
})
