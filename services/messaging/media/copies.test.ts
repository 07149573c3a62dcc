import { createHash, randomBytes } from 'node:crypto'
import { createServer } from 'node:http'
import { Readable } from 'node:stream'
import { getMessageMedia as contract } from '@app/shared/contracts/media.ts'
import { newId } from '@app/shared/values/ids.ts'
import type { Lane } from '@app/shared/mailbox/lanes.ts'
import { toProblem } from '@app/shared/api/problem.ts'
import { inTime } from '@app/shared/work/overdue.ts'
import { listen } from '@app/test/listen.ts'
import { untilSomebodyWaits } from '@app/test/lock-waits.ts'
import { until } from '@app/test/until.ts'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { getMessage } from '../messages/get-message.ts'
import { organizationId, phoneNumberId, type TestMessaging, testMessaging } from '../testing/app.ts'
import { inboundValue, platformOf } from '../testing/callbacks.ts'
import { json, unknownObject } from '../testing/media-platform.ts'
import { beginCopies } from './begin-copies.ts'
import { wakeSleepers } from './copy-media.ts'
import { download } from './download.ts'
import { findMedia } from './find-media.ts'
import { getMessageMedia } from './get-message-media.ts'
import { type CopyOutcome, settleCopies } from './settle-copies.ts'
import { reserveFile } from './unclaimed-files.ts'
import { takeCopies, type WaitingCopy } from './waiting-copies.ts'

let app: TestMessaging
beforeAll(async () => {
  app = await testMessaging()
})
afterAll(() => app.close())
beforeEach(() => {
  app.files.answerWith(null)
  app.files.calls.length = 0
})

let count = 0

/** A customer sends a picture; the platform keeps it unless `known` is false. */
async function picture({ known = true, sha256 = true, more = {} } = {}) {
  const n = ++count
  const bytes = randomBytes(50_000)
  const mediaId = `90000${n}`
  if (known) app.files.sent.set(mediaId, { bytes, mimeType: 'image/jpeg' })
  const hash = createHash('sha256').update(bytes).digest('base64')
  const image = { id: mediaId, mime_type: 'image/jpeg', caption: 'Look', ...(sha256 && { sha256: hash }), ...more }
  const upstreamId = `wamid.PICTURE${n}`
  await platformOf(app).messages(inboundValue(upstreamId, '', { type: 'image', image, text: undefined }))
  await until(async () => expect(await rowOf(upstreamId)).toBeDefined())
  return { upstreamId, mediaId, bytes, id: (await rowOf(upstreamId))?.id ?? '' }
}

const rowOf = async (upstreamId: string) =>
  (
    await app.sql<
      { id: string; mediaId: string }[]
    >`select id, media_id from messages where upstream_id = ${upstreamId}`
  )[0]

interface Told {
  svc: { media_url: string | null; media_status: string; message_id: string }
}
const told = async (upstreamId: string) =>
  (await app.events()).filter(({ id }) => id === upstreamId).map(({ payload }) => (payload as unknown as Told).svc)

const caller = {
  organizationId,
  keyId: newId('key'),
  requestId: newId('req'),
  deadline: performance.now() + 60_000,
  traceparent: '',
}
const input = (id: string) => ({ params: { phone_number_id: phoneNumberId, id }, query: {}, body: undefined })
const locationOf = async (id: string) => {
  const answer = await getMessageMedia(app, input(id), caller).catch(toProblem)
  return 'location' in answer ? answer.location : answer
}
const late = () => app.sql`update media_copies set event_due_at = now()`
const hurry = () => app.sql`
  with c as (update media_copies set due_at = now() where begun_at is null)
  update media_lanes set due_at = now(), arrivals = arrivals + 1
`

test('a picture is copied first and told then, with an address that serves it', async () => {
  const { upstreamId, id, bytes } = await picture()
  await until(async () => expect(await told(upstreamId)).toHaveLength(1))
  const [svc] = await told(upstreamId)
  expect(svc).toMatchObject({ media_status: 'ready', message_id: id })
  expect(svc?.media_url).toMatch(/^https:\/\/chat\.example\.com\/media\/[\w-]{32}$/)
  expect(await locationOf(id)).toBe(svc?.media_url)
  expect(await getMessage(app, input(id), caller)).toMatchObject({
    media_url: svc?.media_url,
    media_status: 'ready',
    content: 'Look',
    type: 'image',
  })

  const opaque = svc?.media_url?.slice(-32) ?? ''
  const found = await findMedia(app, { params: { opaque }, query: {}, body: undefined }, caller)
  if ('whole' in found) throw new Error('never')
  const { organizationId } = caller
  expect(found).toMatchObject({ organization_id: organizationId, mime_type: 'image/jpeg', size: bytes.length })
  const opened = await app.media.store.open(found.file_key)
  expect(Buffer.concat((await opened?.toArray()) ?? []).equals(bytes)).toBe(true)
  expect(app.files.calls.every(({ authorization }) => authorization === 'Bearer token')).toBe(true)
  expect(Number((await app.sql`select count(*) from unclaimed_files`)[0]?.['count'])).toBe(0)
})

test('text is told at once, and a sticker has no file', async () => {
  await platformOf(app).messages(inboundValue('wamid.TEXT', 'hi'))
  await until(async () => expect(await told('wamid.TEXT')).toHaveLength(1))
  expect((await told('wamid.TEXT'))[0]).not.toHaveProperty('media_url')
  const sticker = { type: 'sticker', sticker: { id: '1', mime_type: 'image/webp' }, text: undefined }
  await platformOf(app).messages(inboundValue('wamid.STICKER', '', sticker))
  await until(async () => expect(await told('wamid.STICKER')).toHaveLength(1))
  expect(await locationOf((await rowOf('wamid.STICKER'))?.id ?? '')).toMatchObject({ failure: 'resource_not_found' })
})

test('a copy that takes too long is told of once, pending; the file is there later all the same', async () => {
  const gate = Promise.withResolvers<void>()
  app.files.answerWith((_call, response) => void gate.promise.then(() => json(response, { error: { code: 2 } }, 503)))
  const { upstreamId, id, mediaId } = await picture()
  expect(await told(upstreamId)).toEqual([])
  expect(await locationOf(id)).toMatchObject({
    failure: 'resource_not_found',
    message: 'The file of the message is still being copied from the platform.',
  })
  const [file] = await app.sql<{ opaque: string }[]>`
    select opaque from media where id = ${(await rowOf(upstreamId))?.mediaId ?? ''}
  `
  const address = { params: { opaque: file?.opaque ?? '' }, query: {}, body: undefined }
  await expect(findMedia(app, address, caller)).rejects.toMatchObject({ failure: 'resource_not_found' })
  await late()
  await until(async () => expect(await told(upstreamId)).toMatchObject([{ media_url: null, media_status: 'pending' }]))
  expect(await getMessage(app, input(id), caller)).toMatchObject({ media_url: null, media_status: 'pending' })

  app.files.answerWith(null)
  gate.resolve()
  await until(async () => {
    await hurry()
    expect(await locationOf(id)).toMatch(/^https:/)
  })
  expect(app.files.calls.some(({ path }) => path === `/files/${mediaId}`)).toBe(true)
  expect(await told(upstreamId)).toHaveLength(1)
})

test('a slow file delays neither texts of the same number nor other organizations’ lanes', async () => {
  const gate = Promise.withResolvers<void>()
  app.files.answerWith((_call, response) => void gate.promise.then(() => response.destroy()))
  const slow = await Promise.all(Array.from({ length: 12 }, () => picture()))
  await platformOf(app).messages(inboundValue('wamid.BESIDE', 'hi'))
  await until(async () => expect(await told('wamid.BESIDE')).toHaveLength(1))
  // One organization has at most 8 in work.
  const begun = async () =>
    Number((await app.sql`select count(*) from media_copies where begun_at is not null`)[0]?.['count'])
  await until(async () => expect(await begun()).toBe(8))
  app.files.answerWith(null)
  gate.resolve()
  await until(async () => {
    await hurry()
    for (const { upstreamId } of slow) expect(await told(upstreamId)).toMatchObject([{ media_status: 'ready' }])
  })
})

test('what somebody waits to be told of goes before what was imported', async () => {
  const lane = newId('org')
  const lanes = [{ lane: { id: lane } as Lane, free: 2, fresh: true, heldMs: 0 }]
  await app.sql`
    insert into media_copies (organization_id, phone_number_id, media_id, lane, upstream_media_id, due_at, event, event_due_at)
    select ${lane}, ${phoneNumberId}, 'med_' || n, ${lane}, n, now() - (10 - n) * interval '1 second',
      case when n = 5 then '{}'::jsonb end, now() + interval '1 hour' from generate_series(1, 5) n
  `
  const taken = async () =>
    (await app.sql.begin((tx) => takeCopies(tx, lanes))).map(({ mediaId }) => mediaId).toSorted()
  expect(await taken()).toEqual(['med_1', 'med_5'])
  await app.sql`delete from media_copies where lane = ${lane}`
})

test('a lane that is due already keeps its place when another copy comes', async () => {
  const lane = newId('org')
  const file = { id: '1', mime_type: 'image/jpeg', sha256: null, filename: null }
  await app.sql.begin(async (tx) => {
    await tx`insert into media_lanes (id, grp, due_at) values (${lane}, ${lane}, now() - interval '1 minute')`
    await beginCopies(tx, [{ organizationId: lane, phoneNumberId, mediaId: newId('med'), file, event: null }])
    const place = await tx`select from media_lanes where id = ${lane} and due_at < now() and arrivals = 1`
    expect(place).toHaveLength(1)
    for (const table of ['media_lanes', 'media_copies', 'media'])
      await tx`delete from ${tx(table)} where ${tx(table === 'media_lanes' ? 'id' : 'organization_id')} = ${lane}`
  })
})

test('a copy that its holder has begun is not begun again, told of or not; whoever takes the lane over begins it', async () => {
  const lane = newId('org')
  await app.sql`
    insert into media_copies (organization_id, phone_number_id, media_id, lane, upstream_media_id, begun_at, event, event_due_at)
    select ${lane}, ${phoneNumberId}, 'med_' || n, ${lane}, n, case when n <= 2 then now() end,
      case when n % 2 = 0 then '{}'::jsonb end, now() + interval '1 hour' from generate_series(1, 4) n
  `
  const taken = async (fresh: boolean) => {
    const wants = [{ lane: { id: lane } as Lane, free: 8, fresh, heldMs: 0 }]
    return (await app.sql.begin((tx) => takeCopies(tx, wants))).map(({ mediaId }) => mediaId).toSorted()
  }
  expect(await taken(false)).toEqual(['med_3', 'med_4'])
  expect(await taken(true)).toEqual(['med_1', 'med_2', 'med_3', 'med_4'])
  await app.sql`delete from media_copies where lane = ${lane}`
})

test('copies begin beside one that somebody has in hand, and do not wait for it', async () => {
  const lane = newId('org')
  const ids = [newId('med'), newId('med')]
  await app.sql`
    insert into media_copies (organization_id, phone_number_id, media_id, lane, upstream_media_id, event_due_at)
    select ${lane}, ${phoneNumberId}, id, ${lane}, '1', now() from unnest(${ids}::text[]) id
  `
  const wants = [{ lane: { id: lane } as Lane, free: 8, fresh: true, heldMs: 0 }]
  const begun = await app.sql.begin(async (tx) => {
    await tx`select from media_copies where media_id = ${ids[0] ?? ''} for update`
    return app.sql.begin((other) => takeCopies(other, wants))
  })
  expect(begun.map(({ mediaId }) => mediaId)).toEqual(ids.slice(1))
  await app.sql`delete from media_copies where lane = ${lane}`
})

test('an address that is dead is looked up again', async () => {
  let dead = true
  const { answerWith } = app.files
  const usual = new Map(app.files.sent)
  answerWith((call, response, origin) => {
    const id = call.path.split('/').at(-1) ?? ''
    const file = app.files.sent.get(id) ?? usual.get(id)
    if (!call.path.startsWith('/files/'))
      return json(response, { url: `${origin}/files/${id}`, mime_type: 'image/jpeg' })
    if (dead) {
      dead = false
      return response.writeHead(404).end()
    }
    response.end(file?.bytes)
  })
  const { upstreamId } = await picture()
  await until(async () => expect(await told(upstreamId)).toMatchObject([{ media_status: 'ready' }]))
  expect(app.files.calls.map(({ path }) => path.startsWith('/files/'))).toEqual([false, true, false, true])
})

test('bytes with another hash are not taken', async () => {
  const { id } = await picture({ more: { sha256: createHash('sha256').update('other').digest('base64') } })
  await until(async () => {
    const [copy] = await app.sql<{ attempts: number }[]>`
      select attempts from media_copies c join messages m using (media_id) where m.id = ${id} and begun_at is null and attempts > 0
    `
    expect(copy).toBeDefined()
  })
  expect(await locationOf(id)).toMatchObject({ failure: 'resource_not_found' })
  expect(await app.sql`select from unclaimed_files`).toHaveLength(0)
  await app.sql`delete from media_copies`
})

test('what the platform does not have is told as failed', async () => {
  const { upstreamId, id } = await picture({ known: false })
  await until(async () => {
    await hurry()
    expect(await told(upstreamId)).toMatchObject([{ media_url: null, media_status: 'failed' }])
  })
  expect(await locationOf(id)).toMatchObject({ failure: 'resource_not_found' })
  expect(Number((await app.sql`select count(*) from media_copies`)[0]?.['count'])).toBe(0)
})

const attemptsOf = async (upstreamMediaId: string) =>
  Number(
    (await app.sql`select attempts from media_copies where upstream_media_id = ${upstreamMediaId}`)[0]?.['attempts'] ??
      0,
  )

const unproven = { error: { code: 100, message: 'Invalid appsecret_proof provided in the API argument' } }

test.each([
  ['does not show to our token for a while', unknownObject, 5],
  ['refuses to look up for a proof of before the secret was set anew', unproven, 10],
])('a file that the platform %s is copied when it does again', async (_name, refusal, tries) => {
  app.files.answerWith((_call, response) => json(response, refusal, 400))
  const { upstreamId, id, mediaId } = await picture()
  await until(async () => {
    await hurry()
    expect(await attemptsOf(mediaId)).toBeGreaterThanOrEqual(tries)
  })
  app.files.answerWith(null)
  await until(async () => {
    await hurry()
    expect(await locationOf(id)).toMatch(/^https:/)
  })
  expect(await told(upstreamId)).toHaveLength(1)
})

test('whoever was told that a file is still to come sees in the message that it never will', async () => {
  const gate = Promise.withResolvers<void>()
  app.files.answerWith((_call, response) => void gate.promise.then(() => json(response, unknownObject, 400)))
  const { upstreamId, id } = await picture({ known: false })
  await late()
  await until(async () => expect(await told(upstreamId)).toMatchObject([{ media_status: 'pending' }]))
  gate.resolve()
  await until(async () => {
    await hurry()
    expect(await getMessage(app, input(id), caller)).toMatchObject({ media_url: null, media_status: 'failed' })
  })
  expect(await locationOf(id)).toMatchObject({ message: 'The file of the message could not be had from the platform.' })
  expect(await told(upstreamId)).toHaveLength(1)
})

test('a file that the platform cannot give is asked for three times', async () => {
  app.files.answerWith((_call, response) => json(response, { error: { code: 131052, message: 'no' } }, 400))
  const { upstreamId } = await picture()
  await until(async () => {
    await hurry()
    expect(await told(upstreamId)).toMatchObject([{ media_url: null, media_status: 'failed' }])
  })
  expect(app.files.calls).toHaveLength(3)
})

const tooLarge = 100 * 1024 * 1024 + 1
test('a file that is larger than any may be is asked for three times, and not fetched', async () => {
  app.files.answerWith((_call, response, origin) => json(response, { url: `${origin}/files/1`, file_size: tooLarge }))
  const { upstreamId } = await picture()
  await until(async () => {
    await hurry()
    expect(await told(upstreamId)).toMatchObject([{ media_url: null, media_status: 'failed' }])
  })
  expect(app.files.calls).toHaveLength(3)
})

test('a host of files whose answer is refused is hung up on, however much it would still say', async () => {
  const hungUp = Promise.withResolvers<unknown>()
  app.files.answerWith(({ path }, response, origin) => {
    if (!path.startsWith('/files/')) return json(response, { url: `${origin}/files/1` })
    response.on('close', hungUp.resolve).writeHead(500).write('x')
  })
  const media = { phoneNumberId, token: 'token', upstreamMediaId: '1', sha256: null }
  expect(await download(app, media, await reserveFile(app.sql))).toMatchObject({ kind: 'failed' })
  await inTime(hungUp.promise, 2_000)
})

test('a file that turns out to be larger than any may be is gone', async () => {
  const mebibyte = Buffer.alloc(1024 * 1024)
  app.files.answerWith(({ path }, response, origin) => {
    if (!path.startsWith('/files/')) return json(response, { url: `${origin}/files/1` })
    Readable.from(Array.from({ length: 101 }, () => mebibyte)).pipe(response)
  })
  const put = async (_key: string, bytes: AsyncIterable<Uint8Array>) => {
    for await (const _ of bytes);
    return { size: 0, sha256: '' }
  }
  const core = { ...app, media: { ...app.media, store: { ...app.media.store, put } } }
  const media = { phoneNumberId, token: 'token', upstreamMediaId: '1', sha256: null }
  expect(await download(core, media, 'key')).toMatchObject({ kind: 'gone' })
})

test('a hash is read in hex and in base64, from the callback and from the look-up; what is neither says nothing', async () => {
  const bytes = randomBytes(10)
  const kindFor = async (told: string | null, found: string | null) => {
    app.files.answerWith(({ path }, response, origin) => {
      if (path.startsWith('/files/')) return response.end(bytes)
      json(response, { url: `${origin}/files/1`, sha256: found })
    })
    const media = { phoneNumberId, token: 'token', upstreamMediaId: '1', sha256: told }
    return (await download(app, media, await reserveFile(app.sql))).kind
  }
  const writingsOf = (content: Buffer) => {
    const hash = createHash('sha256').update(content).digest()
    return [hash.toString('hex'), hash.toString('hex').toUpperCase(), hash.toString('base64')]
  }
  for (const said of [...writingsOf(bytes), 'odd'])
    expect([await kindFor(said, null), await kindFor(null, said)]).toEqual(['copied', 'copied'])
  for (const said of writingsOf(randomBytes(10)))
    expect([await kindFor(said, null), await kindFor(null, said)]).toEqual(['failed', 'failed'])
})

test('a file has the name of its callback, and the type that the platform looks up, or else that of its callback', async () => {
  const named = { mime_type: 'image/png', filename: 'look.png' }
  const kept = async ({ upstreamId }: { upstreamId: string }) => {
    await until(async () => expect(await told(upstreamId)).toMatchObject([{ media_status: 'ready' }]))
    const row = await rowOf(upstreamId)
    return (await app.sql`select mime_type, filename from media where id = ${row?.mediaId ?? ''}`)[0]
  }
  expect(await kept(await picture({ more: named }))).toEqual({ mimeType: 'image/jpeg', filename: 'look.png' })
  app.files.answerWith(({ path }, response, origin) => {
    if (path.startsWith('/files/')) return response.end('x')
    json(response, { url: `${origin}/files/1` })
  })
  const untyped = await picture({ sha256: false, more: named })
  expect(await kept(untyped)).toEqual({ mimeType: 'image/png', filename: 'look.png' })
})

test('a copy that fails is tried again after a second, and later every hour', async () => {
  app.files.answerWith((_call, response) => json(response, { error: { code: 2 } }, 503))
  const { mediaId } = await picture()
  const waitAfter = async (attempt: number) => {
    await until(async () => expect(await attemptsOf(mediaId)).toBe(attempt))
    const rows = () => app.sql<{ wait: number }[]>`
      select extract(epoch from due_at - now())::float8 as wait from media_copies
      where upstream_media_id = ${mediaId} and begun_at is null
    `
    await until(async () => expect(await rows()).toHaveLength(1))
    return (await rows())[0]?.wait
  }
  expect(await waitAfter(1)).toBeLessThan(1.1)
  await app.sql`update media_copies set attempts = 7 where upstream_media_id = ${mediaId}`
  await hurry()
  expect(await waitAfter(8)).toBeGreaterThan(3_500)
  await app.sql`delete from media_copies`
})

test('a file is asked for as long as the platform keeps it', async () => {
  app.files.answerWith((_call, response) => json(response, { error: { code: 2 } }, 503))
  const { upstreamId, mediaId } = await picture()
  const age = (time: string) => app.sql`
    update media_copies set created_at = now() - ${time}::interval where upstream_media_id = ${mediaId}
  `
  await age('6 days 23 hours')
  await until(async () => {
    await hurry()
    expect(await attemptsOf(mediaId)).toBeGreaterThanOrEqual(3)
  })
  expect(await told(upstreamId)).toEqual([])
  await age('7 days 1 hour')
  await until(async () => {
    await hurry()
    expect(await told(upstreamId)).toMatchObject([{ media_url: null, media_status: 'failed' }])
  })
})

const looksInAnHour = () =>
  app.sql`select 1 from media_copies where begun_at is null and due_at > now() + interval '59 minutes'`

test('a file of a number that was detached waits, unasked for, until the number is there again', async () => {
  app.files.answerWith((_call, response) => json(response, { error: { code: 2 } }, 503))
  const { upstreamId, mediaId } = await picture()
  await until(async () => expect(await attemptsOf(mediaId)).toBe(1))
  await app.setSender({ attached: false, refusal: 'account_not_connected' })
  await until(async () => expect(await app.sql`select 1 from media_copies where begun_at is null`).toHaveLength(1))
  app.files.answerWith(null)
  app.files.calls.length = 0
  await hurry()
  await until(async () => expect(await looksInAnHour()).toHaveLength(1))
  expect([app.files.calls, await told(upstreamId)]).toEqual([[], []])
  await app.putSender({})
  await until(async () => expect(await told(upstreamId)).toMatchObject([{ media_status: 'ready' }]))
})

test('the hours in which a number was detached are no tries: what the platform does not show at first is asked for again', async () => {
  app.files.answerWith((_call, response) => json(response, { error: { code: 2 } }, 503))
  const { upstreamId, mediaId } = await picture()
  await until(async () => expect(await attemptsOf(mediaId)).toBe(1))
  await app.setSender({ attached: false, refusal: 'account_not_connected' })
  for (let look = 0; look < 10; look++) {
    await until(async () => expect(await app.sql`select 1 from media_copies where begun_at is null`).toHaveLength(1))
    await hurry()
    await until(async () => expect(await looksInAnHour()).toHaveLength(1))
  }
  app.files.answerWith((_call, response) => json(response, unknownObject, 400))
  app.files.calls.length = 0
  await app.setSender({})
  await until(async () => {
    await hurry()
    expect(app.files.calls.length).toBeGreaterThan(2)
  })
  app.files.answerWith(null)
  await until(async () => {
    await hurry()
    expect(await told(upstreamId)).toMatchObject([{ media_status: 'ready' }])
  })
})

test('tries that failed for hours take none from those of a file that the platform does not have yet', async () => {
  app.files.answerWith((_call, response) => json(response, { error: { code: 2 } }, 503))
  const { upstreamId, mediaId } = await picture()
  await until(async () => {
    const { count } = await app.sql`update media_copies set attempts = 20 where attempts > 0 and begun_at is null`
    expect(count).toBe(1)
  })
  await until(async () => {
    await hurry()
    expect(await attemptsOf(mediaId)).toBeGreaterThan(20)
  })
  app.files.answerWith((_call, response) => json(response, { error: { code: 131052, message: 'no' } }, 400))
  await until(async () => {
    const [copy] = await app.sql<{ refusals: number; wait: number }[]>`
      select refusals, extract(epoch from due_at - now())::float8 as wait from media_copies where begun_at is null
    `
    if (copy?.refusals === 0) await hurry()
    expect(copy?.refusals).toBeGreaterThan(0)
    expect(copy?.wait).toBeLessThan(2.1)
  })
  app.files.answerWith(null)
  await until(async () => {
    await hurry()
    expect(await told(upstreamId)).toMatchObject([{ media_status: 'ready' }])
  })
})

test('a file host that refuses is named, and whether it may have the bearer', async () => {
  const stranger = createServer((_request, response) => response.writeHead(401).end())
  const { origin } = new URL(`http://127.0.0.1:${await listen(stranger)}`)
  app.files.answerWith((_call, response) => json(response, { url: `${origin}/file?secret=1` }))
  const media = { phoneNumberId, token: 'token', upstreamMediaId: '1', sha256: null }
  expect(await download(app, media, 'key')).toEqual({
    kind: 'failed',
    details: `${origin}, which is not one of UPSTREAM_MEDIA_ORIGINS, answered 401`,
  })
  app.files.answerWith(null)
  stranger.close().closeAllConnections()
})

test('a bearer goes to the platform’s own origin alone', async () => {
  const seen: (string | undefined)[] = []
  const bytes = randomBytes(10)
  const stranger = createServer((request, response) => {
    seen.push(request.headers.authorization)
    response.end(bytes)
  })
  const url = `http://127.0.0.1:${await listen(stranger)}/file`
  app.files.answerWith((_call, response) => json(response, { url, mime_type: 'image/jpeg' }))
  const { upstreamId } = await picture({ sha256: false })
  await until(async () => expect(await told(upstreamId)).toMatchObject([{ media_status: 'ready' }]))
  expect(seen).toEqual([undefined])

  // Not allowed out to there, it is not called at all.
  app.files.answerWith((_call, response) => json(response, { url: 'http://10.0.0.1/file', mime_type: 'image/jpeg' }))
  const { id } = await picture({ sha256: false })
  await late()
  await new Promise((resolve) => setTimeout(resolve, 300))
  expect(await locationOf(id)).toMatchObject({ failure: 'resource_not_found' })
  await app.sql`delete from media_copies`
  stranger.close().closeAllConnections()
})

test('a copy that a process died over is begun again', async () => {
  app.files.answerWith((_call, response) => json(response, { error: { code: 2 } }, 503))
  const { upstreamId } = await picture()
  await until(async () =>
    expect(await app.sql`select seq from media_copies where attempts > 0 and begun_at is null`).toHaveLength(1),
  )
  app.files.answerWith(null)
  // As a kill -9 leaves it: begun, and its lane held by nobody any more.
  await app.sql`update media_copies set begun_at = now() - interval '1 minute', due_at = now() - interval '1 minute'`
  await app.sql`update media_lanes set due_at = now(), held_until = now() - interval '1 second'`
  await until(async () => expect(await told(upstreamId)).toMatchObject([{ media_status: 'ready' }]))
})

test('copies that a process died over are begun again though newer ones go first', async () => {
  const ready = (pictures: { upstreamId: string }[]) =>
    until(async () => {
      for (const { upstreamId } of pictures)
        expect((await told(upstreamId)).at(-1)).toMatchObject({ media_status: 'ready' })
    })
  // Its lane is held by a process that is gone, which has begun eight of them and told of them without their files.
  await app.sql`
    insert into media_lanes (id, grp, held_until) values (${organizationId}, ${organizationId}, now() + interval '1 hour')
    on conflict (id) do update set held_until = excluded.held_until
  `
  const left = await Promise.all(Array.from({ length: 8 }, () => picture()))
  await app.sql`update media_copies set begun_at = now(), attempts = 1, event = null`
  const newer = await Promise.all(Array.from({ length: 8 }, () => picture()))
  await app.sql`update media_lanes set held_until = now() - interval '1 second'`
  await ready(newer)
  await until(async () => {
    for (const { id } of left) expect(await locationOf(id)).toMatch(/^https:/)
  })
})

test('what came of a copy that another process has begun again since changes nothing of it', async () => {
  const lane: Lane = {
    id: organizationId,
    group: organizationId,
    arrivals: '0',
    heldUntil: '',
    failures: 0,
    pacedMs: 0,
  }
  await app.sql`
    insert into media_lanes (id, grp, held_until) values (${organizationId}, ${organizationId}, now() + interval '1 hour')
    on conflict (id) do update set held_until = excluded.held_until
  `
  const { upstreamId, id } = await picture()
  const rows = await app.sql<WaitingCopy[]>`
    update media_copies set begun_at = now(), attempts = 2 returning lane as lane_id, seq, organization_id, media_id, 1 as attempts
  `
  const [item] = rows
  if (!item) throw new Error('there is no copy')
  const read = async () => [...(await app.sql`select attempts, begun_at, due_at from media_copies`)]
  const before = await read()
  const file = { size: 1, sha256: 'x', mimeType: null }
  const outcomes: (CopyOutcome | null)[] = [
    { kind: 'copied', fileKey: 'other', file },
    { kind: 'failed' },
    { kind: 'again', waitMs: 0 },
    null,
  ]
  for (const outcome of outcomes) {
    await app.sql.begin((tx) => settleCopies(tx, app.media, [{ item, lane, outcome }]))
    expect([await read(), await told(upstreamId)]).toEqual([before, []])
  }
  // Whoever has it now stops before it has begun: that was no try.
  await app.sql.begin((tx) => settleCopies(tx, app.media, [{ item: { ...item, attempts: 2 }, lane, outcome: null }]))
  expect(await read()).toMatchObject([{ attempts: 1, begunAt: null }])
  await app.sql`update media_lanes set held_until = now() - interval '1 second', due_at = now()`
  await until(async () => expect(await told(upstreamId)).toMatchObject([{ media_status: 'ready' }]))
  expect(await locationOf(id)).toMatch(/^https:/)
})

test('copies that end together are locked in one order, as by who deletes their messages: neither waits for the other', async () => {
  const lane: Lane = { id: newId('org'), group: '', arrivals: '0', heldUntil: '', failures: 0, pacedMs: 0 }
  const ids = [newId('med'), newId('med'), newId('med')]
  await app.sql`
    insert into media_copies (organization_id, phone_number_id, media_id, lane, upstream_media_id, event_due_at, begun_at, attempts)
    select ${lane.id}, ${phoneNumberId}, id, ${lane.id}, '1', now(), now(), 1 from unnest(${ids}::text[]) id
  `
  const items = await app.sql<WaitingCopy[]>`
    select lane as lane_id, seq, organization_id, media_id, attempts from media_copies where lane = ${lane.id} order by seq desc
  `
  const file = { size: 1, sha256: 'x', mimeType: null }
  const outcomes: CopyOutcome[] = [
    { kind: 'copied', fileKey: 'k', file },
    { kind: 'failed' },
    { kind: 'again', waitMs: 0 },
  ]
  const done = items.map((item, n) => ({ item, lane, outcome: outcomes[n] ?? null }))
  const { settling, free } = await app.sql.begin(async (tx) => {
    await tx`select from media_copies where organization_id = ${lane.id} and media_id = ${ids[0] ?? ''} for update`
    const settled = app.sql.begin((other) => settleCopies(other, app.media, done))
    await untilSomebodyWaits(app.sql)
    const others = await app.sql`select media_id from media_copies where lane = ${lane.id} for update skip locked`
    return { settling: settled, free: others }
  })
  await settling
  expect(free).toHaveLength(2)
  await app.sql`delete from media_copies where lane = ${lane.id}`
})

test('the same callback twice is one message, one copy, one event', async () => {
  const { upstreamId } = await picture()
  await until(async () => expect(await told(upstreamId)).toHaveLength(1))
  const image = { id: '900001', mime_type: 'image/jpeg' }
  await platformOf(app).messages(inboundValue(upstreamId, '', { type: 'image', image, text: undefined }))
  await platformOf(app).messages(inboundValue('wamid.BEHIND', 'hi'))
  await until(async () => expect(await told('wamid.BEHIND')).toHaveLength(1))
  expect(await told(upstreamId)).toHaveLength(1)
  expect(await app.sql`select seq from media_copies`).toHaveLength(0)
})

test('another organization does not see it, nor is it a message of another number', async () => {
  const { upstreamId, id } = await picture()
  await until(async () => expect(await told(upstreamId)).toHaveLength(1))
  const stranger = { ...caller, organizationId: newId('org') }
  const elsewhere = { ...input(id), params: { phone_number_id: '999999999999', id } }
  for (const read of [getMessageMedia, getMessage]) {
    await expect(read(app, input(id), stranger)).rejects.toMatchObject({ failure: 'resource_not_found' })
    await expect(read(app, elsewhere, caller)).rejects.toMatchObject({ failure: 'resource_not_found' })
  }
  expect(contract.http?.status).toBe(302)
})

test('a lane that sleeps beside a copy is found and woken, and no other lane is waited for', async () => {
  const [asleep, gone, waiting] = [newId('org'), newId('org'), newId('org')]
  await app.sql`
    insert into media_copies (organization_id, phone_number_id, media_id, lane, upstream_media_id, event_due_at, due_at)
    select id, ${phoneNumberId}, 'med', id, '1', now(), now() + interval '1 hour'
    from unnest(${[asleep, gone, waiting]}::text[]) id
  `
  await app.sql`
    insert into media_lanes (id, grp, due_at)
    values (${asleep}, ${asleep}, null), (${waiting}, ${waiting}, now() + interval '2 hours')
  `
  await app.sql.begin(async (tx) => {
    await tx`select from media_lanes where id = ${waiting} for update`
    expect(await wakeSleepers(app.sql)).toBe(2)
  })
  const woken = await app.sql<{ id: string }[]>`
    select id from media_lanes where id = any(${[asleep, gone, waiting]}) and due_at < now() + interval '1 hour 1 minute'
  `
  expect(woken.map(({ id }) => id).toSorted()).toEqual([asleep, gone].toSorted())
})
