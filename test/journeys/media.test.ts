import { createHash, randomBytes } from 'node:crypto'
import { mkdtempSync, openAsBlob, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { request } from 'undici'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { png } from '../png.ts'
import { client, type Json, newPhone, until } from './client.ts'
import { checkAnswer } from './openapi-check.ts'
import { type Receiver, startReceiver } from './receiver.ts'

const stack = inject('stack')
const { api, phone, control } = client()
const root = stack.base_url.replace(/\/v1$/, '')
let receiver: Receiver

beforeAll(async () => {
  receiver = await startReceiver()
  const created = await api('POST', '/webhook_subscriptions', {
    body: { url: receiver.url, events: ['message.received'] },
  })
  expect(created.status).toBe(201)
})
afterAll(() => receiver.close())

/** A PDF, as far as anybody looks. */
const pdf = (size: number) => Buffer.concat([Buffer.from('%PDF-1.7\n'), randomBytes(size - 9)])
const hashOf = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')

async function upload(file: Blob, headers: Record<string, string> = {}) {
  const form = new FormData()
  form.set('messaging_product', 'chat')
  form.set('file', file, 'a file.pdf')
  const answer = await fetch(`${stack.base_url}/${phone}/media`, {
    method: 'POST',
    headers: { authorization: `Bearer ${stack.api_key}`, ...headers },
    body: form,
  })
  const body = (await answer.json()) as Json
  checkAnswer('POST', `/${phone}/media`, answer.status, body)
  expect(answer.headers.get('x-request-id')).toMatch(/^req_/)
  return { status: answer.status, headers: answer.headers, body }
}

async function get(url: string, headers: Record<string, string> = {}) {
  const answer = await request(url, { headers })
  return { status: answer.statusCode, headers: answer.headers, bytes: Buffer.from(await answer.body.arrayBuffer()) }
}

/** A customer sends a file; answers the platform's id of the message. */
async function inboundFile(type: 'image' | 'document', mimeType: string, bytes: Buffer, id?: string) {
  const medium =
    id === undefined ? await control('/control/media', { mime_type: mimeType, data: bytes.toString('base64') }) : { id }
  const block = { id: medium.id, mime_type: mimeType, sha256: createHash('sha256').update(bytes).digest('base64') }
  const message = { from: newPhone().slice(1), type, [type]: { ...block, caption: 'Look at this' } }
  const received = await control('/control/inbound', { phone_number_id: phone, message })
  return received.id as string
}

const toldOf = (upstreamId: string) =>
  receiver.of('message.received').filter(({ headers }) => headers['x-svc-event-id'] === upstreamId)

describe('an upload', () => {
  test('of 5 MB is stored, and answers what it is', async () => {
    const bytes = pdf(5 * 1024 * 1024)
    const before = Date.now()
    const { status, body } = await upload(new Blob([bytes], { type: 'application/pdf' }))
    expect([status, body.data]).toEqual([
      201,
      {
        id: expect.stringMatching(/^med_/),
        object: 'media',
        mime_type: 'application/pdf',
        sha256: hashOf(bytes),
        size: bytes.length,
        expires_at: expect.stringMatching(/Z$/),
      },
    ])
    const days = (Date.parse(body.data.expires_at) - before) / 86_400_000
    expect(days).toBeCloseTo(30, 1)
  })

  test('with a key is one upload, however often it is sent', async () => {
    const headers = { 'idempotency-key': randomBytes(8).toString('hex') }
    const file = new Blob([pdf(10_000)], { type: 'application/pdf' })
    const first = await upload(file, headers)
    const again = await upload(file, headers)
    expect([again.status, again.body, again.headers.get('idempotent-replayed')]).toEqual([201, first.body, 'true'])
    const other = await upload(new Blob([pdf(10_000)], { type: 'application/pdf' }), headers)
    expect([other.status, other.body.error.code]).toEqual([422, 'idempotency_key_reuse'])
  })

  test('of what cannot be sent is refused', async () => {
    const webp = new Blob([Buffer.from('RIFF\x20\0\0\0WEBPVP8 ', 'latin1'), randomBytes(100)], { type: 'image/webp' })
    const { status, body } = await upload(webp)
    expect([status, body.error]).toMatchObject([422, { type: 'invalid_request_error', code: 'media_upload_failed' }])
  })

  test('of 95 MB raises no process’s memory by more than a third of it', { timeout: 180_000 }, async () => {
    const folder = mkdtempSync(join(tmpdir(), 'upload-'))
    writeFileSync(join(folder, 'large'), pdf(95 * 1024 * 1024))
    const file = await openAsBlob(join(folder, 'large'), { type: 'application/pdf' })
    const pids = Object.values(stack.services).flatMap((some) => some.flatMap(({ pid }) => pid ?? []))
    const memory = () =>
      pids.map((pid) => /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? '0')
    const before = memory().map(Number)
    const peaks = [...before]
    const timer = setInterval(() => memory().forEach((kib, n) => (peaks[n] = Math.max(peaks[n] ?? 0, Number(kib)))), 10)
    expect((await upload(file)).status).toBe(201)
    clearInterval(timer)
    const raisedMib = peaks.map((peak, n) => (peak - (before[n] ?? 0)) / 1024)
    expect(Math.max(...raisedMib)).toBeLessThan(32)
    rmSync(folder, { recursive: true })
  })
})

describe('a picture of a customer', () => {
  test('is told with an address that serves it', async () => {
    const bytes = png(100_000)
    const upstreamId = await inboundFile('image', 'image/png', bytes)
    await until(() => expect(toldOf(upstreamId)).toHaveLength(1))
    const [told] = toldOf(upstreamId)
    const { svc, entry } = told?.body ?? {}
    expect(svc).toMatchObject({ media_status: 'ready', message_id: expect.stringMatching(/^msg_/) })
    expect(entry[0].changes[0].value.messages[0]).toMatchObject({ type: 'image', image: { caption: 'Look at this' } })

    const served = await get(svc.media_url)
    expect([served.status, served.bytes.equals(bytes)]).toEqual([200, true])
    expect(served.headers).toMatchObject({
      'content-type': 'image/png',
      'x-content-type-options': 'nosniff',
      'content-security-policy': 'sandbox',
      'content-disposition': 'inline',
    })
    const part = await get(svc.media_url, { range: 'bytes=10-19' })
    expect([part.status, part.bytes.equals(bytes.subarray(10, 20))]).toEqual([206, true])

    const redirected = await api('GET', `/${phone}/messages/${svc.message_id}/media`)
    expect([redirected.status, redirected.headers['location']]).toEqual([302, svc.media_url])
    const message = await api('GET', `/${phone}/messages/${svc.message_id}`)
    expect(message.body.data).toMatchObject({ type: 'image', content: 'Look at this', media_url: svc.media_url })
  })

  test('that cannot be had is told without one, and does not hold up what comes behind it', async () => {
    const upstreamId = await inboundFile('document', 'application/pdf', pdf(10), '999999999999999')
    const behind = await inboundFile('document', 'application/pdf', pdf(100))
    await until(() => expect(toldOf(behind)).toHaveLength(1))
    expect(toldOf(upstreamId)).toEqual([])
    await until(() => expect(toldOf(upstreamId)).toHaveLength(1))
    const { svc } = toldOf(upstreamId)[0]?.body ?? {}
    expect(svc).toMatchObject({ media_url: null, media_status: expect.stringMatching(/^(pending|failed)$/) })
    expect((await api('GET', `/${phone}/messages/${svc.message_id}/media`)).status).toBe(404)
    const message = await api('GET', `/${phone}/messages/${svc.message_id}`)
    expect(message.body.data).toMatchObject({ media_url: null })
  })
})

test('nothing is found where nothing is', async () => {
  expect((await api('GET', `/${phone}/messages/msg_01JQ8Z6V0A7XJ2N5T9WQ3RBKCD/media`)).status).toBe(404)
  expect((await get(`${root}/media/${'x'.repeat(32)}`)).status).toBe(404)
})
