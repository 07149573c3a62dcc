import { randomBytes } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { newId } from '@app/shared/values/ids.ts'
import { Agent, request } from 'undici'
import { openDatabase } from '@app/shared/database/database.ts'
import { type TestService, testService } from '@app/test/service.ts'
import { startStepProxy } from '@app/test/step-proxy.ts'
import { untilSomebodyWaits } from '@app/test/lock-waits.ts'
import { sessionWithClock } from '@app/test/wrong-clock.ts'
import { until } from '@app/test/until.ts'
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { organizationId, phoneNumberId, type TestMessaging, testMessaging } from '../testing/app.ts'
import { json } from '../testing/media-platform.ts'
import { sweepMediaUploads } from './delete-media.ts'
import { insertMedia } from './media.ts'
import { claimFile, reserveFile } from './unclaimed-files.ts'
import { uploadToPlatform } from './upload-to-platform.ts'
import { forgetUploads, forgetUploadsOf } from './forget-uploads.ts'
import { upstreamMediaId } from './upstream-media-id.ts'

let service: TestService
let app: TestMessaging
beforeAll(async () => {
  service = await testService('messaging')
  app = await testMessaging(service)
})
afterAll(() => app.close())
beforeEach(() => {
  app.files.answerWith(null)
  app.files.calls.length = 0
})

async function stored(bytes: Buffer, of = organizationId) {
  const id = newId('med')
  const fileKey = await reserveFile(app.sql)
  const kept = await app.media.store.put(
    fileKey,
    (async function* () {
      yield bytes
    })(),
  )
  const row = { organizationId: of, id, phoneNumberId, source: 'upload', fileKey, mimeType: 'image/png' } as const
  await app.sql.begin(async (tx) => {
    await claimFile(tx, fileKey)
    await insertMedia(tx, [{ ...row, ...kept, filename: 'a "b".png' }])
  })
  return id
}

const ask = (mediaId: string, waitMs = 5_000, number = phoneNumberId, token = 'token') =>
  upstreamMediaId(app, { organizationId, phoneNumberId: number, mediaId, token }, waitMs)
const askWith = (token: string, mediaId: string) => ask(mediaId, 5_000, phoneNumberId, token)

test('a file goes up once per number, as a form, and its id is remembered', async () => {
  const bytes = randomBytes(300_000)
  const id = await stored(bytes)
  const [first, second] = await Promise.all([ask(id), ask(id)])
  expect(first).toEqual({ kind: 'ready', id: '101' })
  expect([second, await ask(id)]).toEqual([first, first])
  expect(await ask(id, 5_000, '999999999999')).toEqual({ kind: 'ready', id: '102' })
  expect(app.files.calls.map(({ path }) => path)).toEqual([
    `/v23.0/${phoneNumberId}/media`,
    '/v23.0/999999999999/media',
  ])

  const [call] = app.files.calls
  expect(call?.authorization).toBe('Bearer token')
  const form = await new Response(new Uint8Array(call?.body ?? []), {
    headers: { 'content-type': call?.contentType ?? '' },
  }).formData()
  const file = form.get('file') as File
  expect([form.get('messaging_product'), form.get('type'), file.type, file.name]).toEqual([
    'whatsapp',
    'image/png',
    'image/png',
    'a _b_.png',
  ])
  expect(Buffer.from(await file.arrayBuffer()).equals(bytes)).toBe(true)
})

test('a connection that is lost while an upload is begun leaves nothing to wait for', async () => {
  const proxy = await startStepProxy(service.databaseUrl)
  const sql = openDatabase(proxy.url, 'messaging', { max: 1 })
  onTestFinished(async () => {
    await sql.end({ timeout: 1 })
    proxy.close()
  })
  const file = async () => ({ organizationId, phoneNumberId, mediaId: await stored(randomBytes(10)), token: 'token' })
  const begin = async (of: Awaited<ReturnType<typeof file>>) => (await upstreamMediaId({ ...app, sql }, of, 5_000)).kind
  const { steps } = proxy.count()
  expect(await begin(await file())).toBe('ready')
  const all = steps()
  for (let at = 1; at <= all; at++) {
    const one = await file()
    proxy.count({ at, when: 'after' })
    await begin(one)
    proxy.count()
    await until(async () => expect(await begin(one), `step ${at} of ${all}`).toBe('ready'), 5_000)
  }
})

test('an upload that takes longer goes on, and whoever asks again gets what it came to', async () => {
  const id = await stored(randomBytes(10))
  const gate = Promise.withResolvers<void>()
  app.files.answerWith((_call, response) => void gate.promise.then(() => json(response, { id: '777' })))
  expect(await ask(id, 20)).toEqual({ kind: 'uploading' })
  expect(await ask(id, 20)).toEqual({ kind: 'uploading' })
  gate.resolve()
  expect(await ask(id)).toEqual({ kind: 'ready', id: '777' })
  expect(app.files.calls).toHaveLength(1)
})

test('slow uploads of one organization wait for each other, and take no connections of sends', async () => {
  const ids: string[] = []
  for (let n = 0; n < 40; n++) ids.push(await stored(randomBytes(10)))
  const gate = Promise.withResolvers<void>()
  app.files.answerWith((_call, response) => void gate.promise.then(() => json(response, { id: '5' })))
  // As many connections as one organization has uploads at a time.
  const agent = new Agent({ connections: 32 })
  const core = { ...app, upstream: { ...app.upstream, agent } }
  const asking = { organizationId, phoneNumberId, token: 'token' }
  const slow = ids.map((mediaId) => upstreamMediaId(core, { ...asking, mediaId }, 10_000))
  await until(() => expect(app.files.calls).toHaveLength(32))
  const beside = app.upstream.urlOf('/999999999999/messages', 'token')
  const { statusCode, body } = await request(beside, {
    method: 'POST',
    dispatcher: agent,
    body: '{}',
    signal: AbortSignal.timeout(1_000),
  })
  await body.dump()
  expect(statusCode).toBe(200)
  expect(app.files.calls).toHaveLength(32)
  gate.resolve()
  for (const result of await Promise.all(slow)) expect(result).toEqual({ kind: 'ready', id: '5' })
  await agent.close()
})

test('slow uploads of a few organizations take not all connections to the platform: another’s goes on', async () => {
  const gate = Promise.withResolvers<void>()
  onTestFinished(() => gate.resolve())
  app.files.answerWith((_call, response) => void gate.promise.then(() => json(response, { id: '5' })))
  const askOf = async (of: string) =>
    upstreamMediaId(
      app,
      { organizationId: of, phoneNumberId, mediaId: await stored(randomBytes(10), of), token: 'token' },
      60_000,
    )
  const slow: Promise<unknown>[] = []
  // The first gets as many as one may have, each further one half of what is free.
  for (const count of [32, 48, 56, 60]) {
    const of = newId('org')
    slow.push(...Array.from({ length: 32 }, () => askOf(of)))
    await until(() => expect(app.files.calls).toHaveLength(count))
  }
  app.files.answerWith(null)
  expect(await askOf(newId('org'))).toMatchObject({ kind: 'ready' })
  expect(app.files.calls).toHaveLength(61)
  gate.resolve()
  for (const result of await Promise.all(slow)) expect(result).toMatchObject({ kind: 'ready' })
})

test('an upload that has its turn when the process stops is left to another one', async () => {
  const id = await stored(randomBytes(10))
  const core = { ...app, media: { ...app.media, uploading: new Map(), stopping: new AbortController() } }
  core.media.stopping.abort()
  const file = { organizationId, phoneNumberId, mediaId: id, token: 'token' }
  expect(await upstreamMediaId(core, file, 5_000)).toEqual({ kind: 'uploading' })
  expect(await ask(id)).toMatchObject({ kind: 'ready' })
})

test('an upload that another instance has begun while its turn was waited for is left to that one', async () => {
  const id = await stored(randomBytes(10))
  const inLine: typeof app.media.inLine = async (_owner, work) => {
    await app.sql`
      insert into media_uploads (organization_id, phone_number_id, media_id, held_until)
      values (${organizationId}, ${phoneNumberId}, ${id}, now() + interval '1 minute')
    `
    return work()
  }
  const core = { ...app, media: { ...app.media, inLine } }
  const file = { organizationId, phoneNumberId, mediaId: id, token: 'token' }
  expect(await upstreamMediaId(core, file, 5_000)).toEqual({ kind: 'uploading' })
  expect(app.files.calls).toEqual([])
})

test('another instance that is at it is waited for, and one that died is not', async () => {
  const id = await stored(randomBytes(10))
  await app.sql`
    insert into media_uploads (organization_id, phone_number_id, media_id, held_until)
    values (${organizationId}, ${phoneNumberId}, ${id}, now() + interval '1 minute')
  `
  expect(await ask(id)).toEqual({ kind: 'uploading' })
  expect(app.files.calls).toEqual([])
  await app.sql`update media_uploads set held_until = now() where media_id = ${id}`
  expect(await ask(id)).toMatchObject({ kind: 'ready' })
})

test('one that dies while it is at it is waited for for less than ten seconds', async () => {
  const id = await stored(randomBytes(10))
  const gate = Promise.withResolvers<void>()
  app.files.answerWith((_call, response) => void gate.promise.then(() => json(response, { id: '707' })))
  const uploading = ask(id)
  await until(() => expect(app.files.calls).toHaveLength(1))
  const [held] = await app.sql<{ within: boolean }[]>`
    select held_until between now() and now() + interval '10 seconds' as within from media_uploads where media_id = ${id}
  `
  expect(held).toEqual({ within: true })
  gate.resolve()
  expect(await uploading).toEqual({ kind: 'ready', id: '707' })
})

test('one that takes long is held on, so that no other instance begins it', async () => {
  const id = await stored(randomBytes(10))
  const gate = Promise.withResolvers<void>()
  app.files.answerWith((_call, response) => void gate.promise.then(() => json(response, { id: '717' })))
  const uploading = ask(id, 10_000)
  await until(() => expect(app.files.calls).toHaveLength(1))
  const heldUntil = async () => {
    const [row] = await app.sql<{ heldUntil: Date }[]>`select held_until from media_uploads where media_id = ${id}`
    return row?.heldUntil.getTime() ?? 0
  }
  const first = await heldUntil()
  await until(async () => expect(await heldUntil()).not.toBe(first))
  expect(await heldUntil()).toBeGreaterThan(first)
  gate.resolve()
  expect(await uploading).toEqual({ kind: 'ready', id: '717' })
})

test('an instance that was frozen beyond its lease does not undo what another one brought meanwhile', async () => {
  const id = await stored(randomBytes(10))
  const error = { code: 131053, message: 'no', error_data: { details: 'Unsupported' } }
  const gate = Promise.withResolvers<void>()
  app.files.answerWith((_call, response) => void gate.promise.then(() => json(response, { error }, 400)))
  const frozen = ask(id)
  await until(() => expect(app.files.calls).toHaveLength(1))
  await app.sql`
    update media_uploads set held_until = '-infinity', upstream_id = '808', expires_at = now() + interval '29 days'
    where media_id = ${id}
  `
  gate.resolve()
  expect(await frozen).toMatchObject({ kind: 'refused' })
  expect(await ask(id)).toEqual({ kind: 'ready', id: '808' })
})

test('an upload that ends while it is renewed is kept all the same', async () => {
  const id = await stored(randomBytes(10))
  const gate = Promise.withResolvers<void>()
  app.files.answerWith((_call, response) => void gate.promise.then(() => json(response, { id: '909' })))
  const uploading = ask(id, 10_000)
  await until(() => expect(app.files.calls).toHaveLength(1))
  await app.sql.begin(async (tx) => {
    await tx`select from media_uploads where media_id = ${id} for update`
    await untilSomebodyWaits(app.sql)
    gate.resolve()
    // The answer is there by then.
    await sleep(200)
  })
  expect(await uploading).toEqual({ kind: 'ready', id: '909' })
  expect(await app.sql`select upstream_id from media_uploads where media_id = ${id}`).toEqual([{ upstreamId: '909' }])
})

test('what is uploaded once more just when it is swept stays held', async () => {
  const id = await stored(randomBytes(10))
  const { sql } = app
  await sql`
    insert into media_uploads (organization_id, phone_number_id, media_id, held_until, upstream_id, expires_at)
    values (${organizationId}, ${phoneNumberId}, ${id}, '-infinity', '7', now() - interval '2 days')
  `
  const sweep = await sql.begin(async (tx) => {
    await tx`
      update media_uploads set held_until = now() + interval '1 minute', upstream_id = null, expires_at = null where media_id = ${id}
    `
    const swept = sweepMediaUploads(sql)
    await untilSomebodyWaits(sql)
    return { swept }
  })
  expect(await sweep.swept).toBe(0)
  expect(await ask(id, 10)).toEqual({ kind: 'uploading' })
})

test('what is uploaded once more, days after the platform forgot it, is not swept while that lasts', async () => {
  const id = await stored(randomBytes(10))
  await app.sql`
    insert into media_uploads (organization_id, phone_number_id, media_id, held_until, upstream_id, expires_at)
    values (${organizationId}, ${phoneNumberId}, ${id}, '-infinity', '7', now() - interval '2 days')
  `
  const { promise: asked, resolve } = Promise.withResolvers<ServerResponse>()
  app.files.answerWith((_call, response) => resolve(response))
  const upload = ask(id)
  const response = await asked
  expect(await sweepMediaUploads(app.sql)).toBe(0)
  json(response, { id: '8' })
  expect(await upload).toEqual({ kind: 'ready', id: '8' })
})

test('what an instance died over while it brought it to the platform does not stay for ever', async () => {
  const [dead, young] = [await stored(randomBytes(10)), await stored(randomBytes(10))]
  await app.sql`
    insert into media_uploads (organization_id, phone_number_id, media_id, held_until)
    values (${organizationId}, ${phoneNumberId}, ${dead}, now() - interval '25 hours'),
      (${organizationId}, ${phoneNumberId}, ${young}, now() - interval '23 hours')
  `
  await sweepMediaUploads(app.sql)
  expect(await app.sql`select media_id from media_uploads where media_id in (${dead}, ${young})`).toEqual([
    { mediaId: young },
  ])
})

test('files that are forgotten together are locked in one order, whatever theirs is', async () => {
  const [first = '', second = ''] = [await stored(randomBytes(10)), await stored(randomBytes(10))].toSorted()
  const forgettable = async (mediaId: string) => {
    const known = await ask(mediaId)
    const upstreamId = known.kind === 'ready' ? known.id : ''
    return { organizationId, phoneNumberId, mediaId, upstreamId, messageId: newId('msg') }
  }
  const files = [await forgettable(second), await forgettable(first)]
  for (const forget of [forgetUploads, forgetUploadsOf]) {
    const { forgotten } = await app.sql.begin(async (tx) => {
      await tx`select from media_uploads where media_id = ${first} for update`
      const forgotten = app.sql.begin((other) => forget(other, files))
      await untilSomebodyWaits(app.sql)
      await tx`select from media_uploads where media_id = ${second} for update nowait`
      return { forgotten }
    })
    await forgotten
  }
})

test('an id that the platform refuses is forgotten; one that the file has got since, and those of others, stay', async () => {
  const file = { organizationId, phoneNumberId, mediaId: await stored(randomBytes(10)) }
  const known = await ask(file.mediaId)
  const refused = { ...file, upstreamId: known.kind === 'ready' ? known.id : '' }
  const others = [{ upstreamId: 'before' }, { organizationId: newId('org') }, { phoneNumberId: '999999999999' }]
  for (const other of others) await app.sql.begin((tx) => forgetUploads(tx, [{ ...refused, ...other }]))
  expect(await ask(file.mediaId)).toEqual(known)
  await app.sql.begin((tx) => forgetUploads(tx, [refused]))
  expect(await ask(file.mediaId)).not.toEqual(known)
})

test('what the platform got before a message failed over its file is forgotten, and not what it has got since', async () => {
  const file = { organizationId, phoneNumberId, mediaId: await stored(randomBytes(10)) }
  const otherId = await stored(randomBytes(10))
  const messageId = newId('msg')
  const [known, other] = [await ask(file.mediaId), await ask(otherId)]
  await app.sql`
    insert into send_attempts (organization_id, message_id, attempt, begun_at, ended_at, outcome)
    values (${organizationId}, ${messageId}, 1, now() - interval '1 minute', now(), 'sent'),
      (${organizationId}, ${newId('msg')}, 1, now(), now(), 'sent')
  `
  const forget = () => app.sql.begin((tx) => forgetUploadsOf(tx, [{ ...file, messageId }]))
  await forget()
  expect(await ask(file.mediaId)).toEqual(known)
  await app.sql`update send_attempts set begun_at = now() where message_id = ${messageId}`
  await forget()
  expect(await ask(file.mediaId)).not.toEqual(known)
  expect(await ask(otherId)).toEqual(other)
})

test.each([
  ['an id', null, 29 * 86_400],
  ['a refusal for good', 131053, 60],
  ['one that may pass', 131016, 3],
])('%s is known for its time', async (_what, code, seconds) => {
  const id = await stored(randomBytes(10))
  if (code) app.files.answerWith((_call, response) => json(response, { error: { code, message: 'no' } }, 400))
  await ask(id)
  const [row] = await app.sql<{ left: number }[]>`
    select extract(epoch from expires_at - now())::float8 as left from media_uploads where media_id = ${id}
  `
  expect(row?.left).toBeLessThanOrEqual(seconds)
  expect(row?.left).toBeGreaterThan(seconds * 0.5)
})

test('a refusal is told with its code, to the next ones without asking again; later it is tried again', async () => {
  const id = await stored(randomBytes(10))
  const error = { code: 131053, message: 'no', error_data: { details: 'Unsupported' } }
  app.files.answerWith((_call, response) => json(response, { error }, 400))
  const refused = await ask(id)
  expect(refused).toEqual({ kind: 'refused', code: 131053, details: 'Unsupported', askedAt: expect.any(String) })
  expect(await ask(id)).toEqual(refused)
  expect(app.files.calls).toHaveLength(1)
  app.files.answerWith(null)
  await app.sql`update media_uploads set expires_at = now() - interval '1 ms' where media_id = ${id}`
  expect(await ask(id)).toMatchObject({ kind: 'ready' })
})

test('a refusal is told to those who ask with the same token, as of when it was asked: with another one the file is brought', async () => {
  const id = await stored(randomBytes(10))
  const error = { code: 190, message: 'no', error_data: { details: 'The token is revoked' } }
  const gate = Promise.withResolvers<void>()
  app.files.answerWith(({ authorization }, response) => {
    if (authorization !== 'Bearer revoked') return void json(response, { id: '909' })
    void gate.promise.then(() => json(response, { error }, 401))
  })
  const first = askWith('revoked', id)
  await until(() => expect(app.files.calls).toHaveLength(1))
  const askedBy = Date.now()
  // Nobody is told yet what the other token comes to.
  expect(await askWith('new', id)).toEqual({ kind: 'uploading' })
  gate.resolve()
  const refused = await first
  expect(refused).toEqual({ kind: 'refused', code: 190, details: 'The token is revoked', askedAt: expect.any(String) })
  expect(refused.kind === 'refused' && Date.parse(refused.askedAt ?? '')).toBeLessThanOrEqual(askedBy)
  expect(await askWith('revoked', id)).toEqual(refused)
  expect(await askWith('new', id)).toEqual({ kind: 'ready', id: '909' })
  expect(app.files.calls).toHaveLength(2)
  expect(await askWith('revoked', id)).toEqual({ kind: 'ready', id: '909' })
})

test('a refusal is told as of when it was asked by the clock of the database, whatever that of the host', async () => {
  const mediaId = await stored(randomBytes(10))
  const core = { ...app, sql: await sessionWithClock(app.sql, -90_000) }
  app.files.answerWith((_call, response) => json(response, { error: { code: 190, message: 'no' } }, 401))
  const askedAt = Date.now() - 90_000
  const file = { organizationId, phoneNumberId, mediaId, token: 'token' }
  const refused = await upstreamMediaId(core, file, 5_000)
  const told = refused.kind === 'refused' ? refused.askedAt : undefined
  expect(Math.abs(Date.parse(told ?? '') - askedAt)).toBeLessThan(10_000)
})

test.each<[string, (response: ServerResponse) => unknown]>([
  ['a 500 that is not its own', (response) => response.writeHead(500).end('oops')],
  ['a 200 without an id', (response) => json(response, {})],
  ['a closed connection', (response) => response.destroy()],
])('%s is unreachable: it can be tried again', async (_name, answer) => {
  const id = await stored(randomBytes(10))
  app.files.answerWith((_call, response) => void answer(response))
  expect(await ask(id)).toMatchObject({ kind: 'unreachable' })
})

test('a file that is gone is refused', async () => {
  expect(await ask(newId('med'))).toMatchObject({ kind: 'refused', code: 131053 })
})

test('a file whose upload never gets to its bytes is closed', async () => {
  const bytes = Readable.from([randomBytes(10)])
  const media = { ...app.media, store: { ...app.media.store, open: async () => bytes } }
  const upstream = { ...app.upstream, urlOf: () => 'http://127.0.0.1:1/nobody-listens' }
  const file = { fileKey: 'any', mimeType: 'image/png', size: 10, filename: null }
  const result = await uploadToPlatform({ upstream, media }, { phoneNumberId, token: 'token' }, file)
  expect(result).toMatchObject({ kind: 'unreachable' })
  expect(bytes.destroyed).toBe(true)
})

test('a file that breaks off where it is stored is our failure', async () => {
  async function* half() {
    yield randomBytes(5)
    throw new Error('the store broke off')
  }
  const media = { ...app.media, store: { ...app.media.store, open: async () => Readable.from(half()) } }
  const file = { fileKey: 'any', mimeType: 'image/png', size: 10, filename: null }
  const result = await uploadToPlatform({ ...app, media }, { phoneNumberId, token: 'token' }, file)
  expect(result).toMatchObject({ kind: 'unreachable', isOurs: true })
})

test('uploads that take long leave connections for the sends, and an organization leaves turns for the others', async () => {
  const gate = Promise.withResolvers<void>()
  app.files.answerWith((_call, response) => void gate.promise.then(() => json(response, { id: '888' })))
  const ids: string[] = []
  while (ids.length < 310) ids.push(await stored(randomBytes(10)))
  const asked = await Promise.all(ids.map((id) => ask(id, 200)))
  expect(asked.every(({ kind }) => kind === 'uploading')).toBe(true)
  const { id } = await app.send('a text of somebody else', { to: '+15550188001' })
  await vi.waitFor(async () => expect(await app.statusOf(id)).toBe('sent'), { timeout: 5_000, interval: 20 })
  expect(app.files.calls).toHaveLength(32)
  gate.resolve()
  await until(async () => expect(await ask(ids[0] ?? '')).toEqual({ kind: 'ready', id: '888' }))
  expect(await ask(ids.at(-1) ?? '')).toEqual({ kind: 'ready', id: '888' })
})
