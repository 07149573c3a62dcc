import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { notFound } from '@app/shared/api/problem.ts'
import { serve, type Serving } from '@app/shared/bus/rpc.ts'
import { findMedia } from '@app/shared/contracts/media.ts'
import { newFileKey } from '@app/shared/store/store.ts'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { startTestGateway, type TestGateway } from '../testing/gateway.ts'
import { logLines } from '../testing/log-lines.ts'
import { hashOf } from '../testing/uploads.ts'

let gateway: TestGateway
let messaging: Serving
interface StoredFile {
  organization_id?: string
  mime_type: string
  filename: string | null
  bytes: Buffer
  file_key: string
}
const files = new Map<string, StoredFile>()

beforeAll(async () => {
  gateway = await startTestGateway()
  messaging = await serve(
    { ...gateway.peer, name: 'messaging' },
    { findMedia },
    {
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
