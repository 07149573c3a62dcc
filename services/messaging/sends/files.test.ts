import { rename } from 'node:fs/promises'
import { createServer } from 'node:http'
import { listen } from '@app/test/listen.ts'
import { png } from '@app/test/png.ts'
import { until } from '@app/test/until.ts'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { accept, refuse, type TestMessaging, testMessaging } from '../testing/app.ts'
import { platformOf, statusPart } from '../testing/callbacks.ts'
import { json } from '../testing/media-platform.ts'

let app: TestMessaging
let fetched = 0
const server = createServer((_request, response) => {
  fetched++
  response.writeHead(200, { 'content-type': 'image/png' }).end(png())
})
let link: string

beforeAll(async () => {
  app = await testMessaging()
  link = `http://127.0.0.1:${await listen(server)}/a.png`
})
afterAll(async () => {
  server.close().closeAllConnections()
  await app.close()
})
beforeEach(() => {
  app.respondWith(accept)
  app.files.answerWith(null)
  app.files.calls.length = 0
})

const image = (to: string, more: object = {}) =>
  app.sendBody({ messaging_product: 'chat', to, type: 'image', image: { link, ...more } })
const attempts = (id: string) =>
  app.sql<{ attempt: number; outcome: string; detail: string }[]>`
    select attempt, outcome, detail from send_attempts where message_id = ${id} order by attempt
  `

test('a file is brought to the platform before the attempt, which sends it by the id it has there', async () => {
  const { id } = await image('+15550300001', { caption: 'a dot' })
  await until(async () => expect(await app.statusOf(id)).toBe('sent'))
  const [upload] = app.files.calls
  expect(upload).toMatchObject({ method: 'POST', path: `/v23.0/${app.number.phoneNumberId}/media` })
  const { body } = app.calls.find((call) => call.messageId === id) ?? {}
  // A name is for documents alone.
  expect(body).toMatchObject({ type: 'image' })
  expect(body?.['image']).toEqual({ id: '101', caption: 'a dot' })
  expect(await attempts(id)).toEqual([{ attempt: 1, outcome: 'sent', detail: null }])
  const event = (await app.events()).find((one) => one.id === `${id}:sent`)
  const url = expect.stringMatching(/^https:\/\/chat\.example\.com\/media\/[\w-]{32}$/)
  expect(event?.payload).toMatchObject({
    data: { message: { media_url: url, media_status: 'ready', image: { link: url, caption: 'a dot' } } },
  })
})

test.each([131053, 100])(
  'a file that the platform does not find by its id (%i) is brought there again by the next send',
  async (code) => {
    const to = '+15550300020'
    const first = await image(to)
    await until(async () => expect(await app.statusOf(first.id)).toBe('sent'))
    const [kept] = await app.sql<{ mediaId: string }[]>`select media_id from messages where id = ${first.id}`
    const { mediaId } = kept ?? { mediaId: '' }
    // An uploaded file may be sent many times.
    await app.sql`update media set source = 'upload' where id = ${mediaId}`
    const again = () => app.sendBody({ messaging_product: 'chat', to, type: 'image', image: { id: mediaId } })
    const uploads = () => app.files.calls.length
    const before = uploads()
    app.respondWith(refuse(code))
    const refused = await again()
    await until(async () => expect(await app.statusOf(refused.id)).toBe('failed'))
    expect(uploads()).toBe(before)
    app.respondWith(accept)
    const next = await again()
    await until(async () => expect(await app.statusOf(next.id)).toBe('sent'))
    expect(uploads()).toBe(before + 1)
    expect(app.calls.at(-1)?.body).toMatchObject({ image: { id: `10${before + 1}` } })
  },
)

test('a file that the platform finds it does not have once it took the message is brought there again, once', async () => {
  const to = '+15550300021'
  const sent = async (body: object) => {
    const { id } = await app.sendBody({ messaging_product: 'chat', to, type: 'image', image: body })
    await until(async () => expect(await app.statusOf(id)).toBe('sent'))
    return id
  }
  const [first, other] = [await sent({ link }), await sent({ link })]
  const [kept] = await app.sql<{ mediaId: string }[]>`select media_id from messages where id = ${first}`
  const { mediaId } = kept ?? { mediaId: '' }
  await app.sql`update media set source = 'upload' where id = ${mediaId}`
  await app.sql`update messages set media_id = ${mediaId} where id = ${other}`
  const failed = async (id: string) => {
    const [row] = await app.sql<{ upstreamId: string }[]>`select upstream_id from messages where id = ${id}`
    const errors = [{ code: 131053, title: 'Media upload error' }]
    await platformOf(app).messages({ statuses: [statusPart(row?.upstreamId ?? '', 'failed', { errors })] })
    await until(async () => expect(await app.statusOf(id)).toBe('failed'))
  }
  const before = app.files.calls.length
  await failed(first)
  await sent({ id: mediaId })
  expect(app.files.calls).toHaveLength(before + 1)
  // What went out before that is told late.
  await failed(other)
  await sent({ id: mediaId })
  expect(app.files.calls).toHaveLength(before + 1)
})

test('a retry of a send by link is answered as the first, and its file is not fetched again', async () => {
  const body = { messaging_product: 'chat' as const, to: '+15550300006', type: 'image' as const, image: { link } }
  const first = await app.sendBody(body, 'by link')
  await until(async () => expect(await app.statusOf(first.id)).toBe('sent'))
  const before = fetched
  expect(await app.sendBody(body, 'by link')).toEqual(first)
  expect(fetched).toBe(before)
})

test('while a long upload goes on, other conversations are sent, and nothing is begun', async () => {
  let finish = () => {}
  app.files.answerWith((_call, response) => {
    finish = () => json(response, { id: '777' })
  })
  const slow = await image('+15550300002')
  await until(async () => expect(app.files.calls).toHaveLength(1))
  const { id: other } = await app.send('beside it', { to: '+15550300003' })
  await until(async () => expect(await app.statusOf(other)).toBe('sent'))
  // It was looked at, and waits for the next look.
  await until(async () =>
    expect(
      await app.sql`select from send_lanes where id = ${slow.conversationId} and held_until < now() and due_at > now()`,
    ).toHaveLength(1),
  )
  const [open] = await app.sql`select attempts, begun_at from sends where message_id = ${slow.id}`
  expect(open).toEqual({ attempts: 0, begunAt: null })
  finish()
  await until(async () => expect(await app.statusOf(slow.id)).toBe('sent'))
  expect(app.files.calls).toHaveLength(1)
})

test('a file that the platform refuses fails its message with that, and no send is tried', async () => {
  app.files.answerWith((_call, response) =>
    json(response, { error: { code: 100, message: 'no', error_data: { details: 'Unsupported file' } } }, 400),
  )
  const { id } = await image('+15550300004')
  await until(async () => expect(await app.statusOf(id)).toBe('failed'))
  const [row] = await app.sql`select error from messages where id = ${id}`
  expect(row?.['error']).toMatchObject({ code: 'media_upload_failed', provider_code: 100 })
  expect(app.calls.filter((call) => call.messageId === id)).toEqual([])
  expect(await attempts(id)).toEqual([{ attempt: 1, outcome: 'refused', detail: expect.stringContaining('upload: ') }])
})

test('a refusal of an upload over the account is told as of when it was asked for: since then it may be connected anew', async () => {
  let askedBy = 0
  app.files.answerWith((_call, response) => {
    askedBy = Date.now()
    setTimeout(() => json(response, { error: { code: 190, message: 'no' } }, 401), 50)
  })
  const { id } = await image('+15550300190')
  await until(async () => expect(await app.statusOf(id)).toBe('failed'))
  expect(await app.sql`select error ->> 'code' as code from messages where id = ${id}`).toEqual([
    { code: 'upstream_auth_failed' },
  ])
  const told = (await app.events()).filter(({ subject }) => subject === 'event.messaging.account-reported')
  expect(told).toMatchObject([{ payload: { code: 190, at: expect.any(String) } }])
  expect(Date.parse(String(told[0]?.payload['at']))).toBeLessThanOrEqual(askedBy)
})

test.each([
  ['is away', null],
  ['refuses our proof', { code: 100, message: 'Invalid appsecret_proof provided in the API argument' }],
])('a platform that %s for an upload is tried again on the schedule of sends', async (name, error) => {
  app.files.answerWith((_call, response) => (error ? json(response, { error }, 400) : void response.destroy()))
  const { id, conversationId } = await image(name === 'is away' ? '+15550300005' : '+15550300015')
  await until(async () => expect(await attempts(id)).toHaveLength(1))
  expect(await app.statusOf(id)).toBe('queued')
  const [lane] = await app.sql<{ waitMs: number }[]>`
    select extract(epoch from due_at - now())::float8 * 1000 as wait_ms from send_lanes where id = ${conversationId}
  `
  expect(lane?.waitMs).toBeGreaterThan(2_000)
  app.files.answerWith(null)
  await app.sql`update media_uploads set expires_at = now()`
  await app.sql`update send_lanes set due_at = now() where id = ${conversationId}`
  app.dispatcher.wake()
  await until(async () => expect(await app.statusOf(id)).toBe('sent'))
  const first = { outcome: error ? 'refused' : 'unreachable' }
  expect(await attempts(id)).toMatchObject([first, { attempt: 2, outcome: 'sent' }])
})

test('while the stored file is not to be had the send is tried again, and fails with that when it never is', async () => {
  const away = `${app.mediaDir}-away`
  // Held back by a moment's refusal, so that the file is stored before the folder goes.
  app.files.answerWith((_call, response) => response.destroy())
  const { id, conversationId } = await image('+15550300007')
  await until(async () => expect(await attempts(id)).toHaveLength(1))
  const again = async (more: object = {}) => {
    await app.sql`update media_uploads set expires_at = now()`
    await app.sql`update sends set ${app.sql({ attempts: 1, ...more })} where message_id = ${id}`
    await app.sql`delete from send_attempts where message_id = ${id}`
    await app.sql`update send_lanes set due_at = now() where id = ${conversationId}`
    app.dispatcher.wake()
    await until(async () => expect(await attempts(id)).toHaveLength(1))
  }
  await rename(app.mediaDir, away)
  app.files.answerWith(null)
  await again()
  expect(await app.statusOf(id)).not.toBe('failed')
  expect(await attempts(id)).toMatchObject([
    { outcome: 'unreachable', detail: 'upload: The store does not have the file.' },
  ])
  await again({ attempts: 6 })
  await rename(away, app.mediaDir)
  await until(async () => expect(await app.statusOf(id)).toBe('failed'))
  const [row] = await app.sql`select error from messages where id = ${id}`
  expect(row?.['error']).toMatchObject({
    code: 'media_upload_failed',
    message: 'The stored file of the message could not be read.',
    provider_code: null,
  })
})
