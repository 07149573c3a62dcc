import { createHash, randomBytes } from 'node:crypto'
import { createServer } from 'node:http'
import { Readable } from 'node:stream'
import { inTime } from '@app/shared/work/overdue.ts'
import { listen } from '@app/test/listen.ts'
import { until } from '@app/test/until.ts'
import { beforeAll, expect, test } from 'vitest'
import { phoneNumberId, type TestMessaging } from '../testing/app.ts'
import { json } from '../testing/media-platform.ts'
import { messagingWithPictures } from '../testing/pictures.ts'
import { download } from './download.ts'
import { reserveFile } from './unclaimed-files.ts'

const pictures = messagingWithPictures()
const { picture, rowOf, told, locationOf, late } = pictures
let app: TestMessaging
beforeAll(() => void ({ app } = pictures))

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
