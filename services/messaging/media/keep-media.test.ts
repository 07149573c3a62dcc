import { randomBytes } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { createServer, type RequestListener, type Server } from 'node:http'
import { newId } from '@app/shared/values/ids.ts'
import type { MediaKind } from '@app/shared/files/media-kinds.ts'
import { toProblem } from '@app/shared/api/problem.ts'
import { createEgress } from '@app/shared/outside/egress.ts'
import { inTime } from '@app/shared/work/overdue.ts'
import { createTurns } from '@app/shared/work/turns.ts'
import { listen } from '@app/test/listen.ts'
import { untilSomebodyWaits } from '@app/test/lock-waits.ts'
import { png, pngHead } from '@app/test/png.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { organizationId, phoneNumberId, type TestMessaging, testMessaging } from '../testing/app.ts'
import { deleteMediaOf, sweepMedia } from './delete-media.ts'
import { keepMedia } from './keep-media.ts'
import { insertMedia } from './media.ts'
import { claimFile, discardFile, reserveFile, startFileSweep } from './unclaimed-files.ts'

let app: TestMessaging
beforeAll(async () => {
  app = await testMessaging()
})
afterAll(() => app.close())

/** Hosts of links, each with one behaviour. */
const hosts: Server[] = []
afterAll(() => hosts.forEach((host) => host.close().closeAllConnections()))
async function host(listener: RequestListener) {
  const server = createServer(listener)
  hosts.push(server)
  return `http://127.0.0.1:${await listen(server)}/picture.png`
}
const serving = (type: string, bytes: Buffer) =>
  host((_, response) => response.writeHead(200, { 'content-type': type }).end(bytes))

const sender = (waitMs = 20_000) => ({ organizationId, phoneNumberId, deadline: performance.now() + waitMs })
const keepLink = (link: string, kind: MediaKind = 'image', waitMs?: number) =>
  keepMedia(app, sender(waitMs), kind, { link }, 'image.link')
const refusalOf = (kept: Promise<unknown>) =>
  kept.then(
    () => null,
    (err: unknown) => toProblem(err),
  )

const stored = () =>
  readdirSync(app.mediaDir, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile()).length
const isStored = async (fileKey: string) => {
  const file = await app.media.store.open(fileKey)
  file?.destroy()
  return file !== null
}
const countOf = async (table: string) =>
  Number((await app.sql<{ count: string }[]>`select count(*) from ${app.sql(table)}`)[0]?.count)

describe('a link', () => {
  test('is fetched, checked and stored', async () => {
    const bytes = png(200_000)
    const kept = await keepLink(await serving('image/png; charset=binary', bytes))
    expect(kept).toEqual({
      mediaId: expect.stringMatching(/^med_/) as string,
      mimeType: 'image/png',
      filename: 'picture.png',
    })
    const id = 'mediaId' in kept ? kept.mediaId : ''
    const [row] = await app.sql<{ fileKey: string; size: string }[]>`select file_key, size from media where id = ${id}`
    const opened = await app.media.store.open(row?.fileKey ?? '')
    expect(Buffer.concat((await opened?.toArray()) ?? []).equals(bytes)).toBe(true)
    expect([Number(row?.size), await countOf('unclaimed_files')]).toEqual([bytes.length, 0])
  })

  const webp = Buffer.concat([Buffer.from('RIFF\x20\0\0\0WEBPVP8 ', 'latin1'), randomBytes(100)])
  const encoded = { 'content-type': 'image/png', 'content-encoding': 'gzip' }
  const redirecting: RequestListener = (_, response) =>
    response.writeHead(302, { location: 'https://example.com/' }).end()
  const endless: RequestListener = (_, response) => {
    response.writeHead(200, { 'content-type': 'image/png' })
    response.write(pngHead)
    const timer = setInterval(() => response.write(randomBytes(1_000_000)), 1)
    response.on('close', () => clearInterval(timer))
  }
  test.each<[string, () => Promise<string>, string]>([
    ['a redirect', () => host(redirecting), 'redirects'],
    ['WebP', () => serving('image/webp', webp), 'WebP'],
    ['WebP in disguise', () => serving('image/png', webp), 'WebP'],
    ['another type than its Content-Type', () => serving('image/jpeg', png()), 'Content-Type'],
    ['no type', () => host((_, response) => response.end(png())), 'Content-Type'],
    ['another kind', () => serving('application/pdf', Buffer.from('%PDF-1.7\n')), 'no image'],
    ['a page', () => serving('text/html', Buffer.from('<html>')), 'text/html cannot be sent'],
    ['an error', () => host((_, response) => response.writeHead(404).end()), '404'],
    ['a part', () => host((_, response) => response.writeHead(206, { 'content-type': 'image/png' }).end(png())), '206'],
    ['an encoding', () => host((_, response) => response.writeHead(200, encoded).end(png())), 'Content-Encoding'],
    ['nothing', () => serving('image/png', Buffer.alloc(0)), 'empty'],
    ['too much, and says so', () => serving('image/png', png(6_000_000)), 'larger'],
    ['too much, without an end', () => host(endless), 'larger'],
    ['a private address', () => Promise.resolve('https://10.0.0.1/a.png'), 'EGRESS_ALLOW_CIDRS'],
    ['metadata', () => Promise.resolve('http://169.254.169.254/latest/meta-data/'), 'EGRESS_ALLOW_CIDRS'],
    ['another scheme', () => Promise.resolve('ftp://127.0.0.1/a.png'), 'https'],
    ['nobody', () => Promise.resolve('http://127.0.0.1:1/a.png'), 'refused'],
    ['a peer that hangs up', () => host((_, response) => response.destroy()), 'ended before an answer'],
    ['a peer without TLS', async () => (await serving('image/png', png())).replace('http:', 'https:'), 'TLS handshake'],
  ])('to %s is refused, and nothing is stored', async (_name, link, words) => {
    const before = [stored(), await countOf('media')]
    const problem = await refusalOf(keepLink(await link()))
    expect(problem).toMatchObject({ failure: 'media_upload_failed', param: 'image.link' })
    expect(problem?.message).toContain(words)
    expect([stored(), await countOf('media')]).toEqual(before)
    expect(await countOf('unclaimed_files')).toBe(0)
  })

  test.each<[string, RequestListener]>([
    ['says nothing', () => {}],
    [
      'drips',
      (_, response) => {
        response.writeHead(200, { 'content-type': 'image/png' }).write(png(5_000))
        const timer = setInterval(() => response.write('x'), 50)
        response.on('close', () => clearInterval(timer))
      },
    ],
  ])('to a host that %s is given up in time', async (_name, listener) => {
    const link = await host(listener)
    const startedAt = performance.now()
    expect(await refusalOf(keepLink(link, 'image', 400))).toMatchObject({ failure: 'media_upload_failed' })
    expect(performance.now() - startedAt).toBeLessThan(5_000)
    expect(await countOf('unclaimed_files')).toBe(0)
  })

  test('is our failure when the store is away', async () => {
    const link = await serving('image/png', png())
    const put = () => Promise.reject(new Error('S3 answered 500'))
    const broken = { ...app, media: { ...app.media, store: { ...app.media.store, put } } }
    const problem = await refusalOf(keepMedia(broken, sender(), 'image', { link }, 'image.link'))
    expect(problem).toMatchObject({ failure: 'service_unavailable' })
  })

  test('is not fetched beyond what may be fetched at a time, and nothing is written for it', async () => {
    const fetching = createTurns({ ofOne: 0, inAll: 0, firsts: 0 })
    const sql = (() => Promise.reject(new Error('nothing is to be written'))) as unknown as typeof app.sql
    const busy = { ...app, sql, media: { ...app.media, fetching } }
    const link = await serving('image/png', png())
    const problem = await refusalOf(keepMedia(busy, sender(), 'image', { link }, 'image.link'))
    expect(problem).toMatchObject({ failure: 'service_unavailable' })
  })

  test('is our failure when the proxy is away', async () => {
    const egress = createEgress({ allowCidrs: '127.0.0.0/8', proxyUrl: 'http://127.0.0.1:1' })
    const broken = { ...app, media: { ...app.media, egress } }
    const link = await serving('image/png', png())
    const problem = await refusalOf(keepMedia(broken, sender(), 'image', { link }, 'image.link'))
    expect(problem).toMatchObject({ failure: 'service_unavailable' })
    await egress.close()
  })

  test('whose answer is refused is hung up on, however much it would still say', async () => {
    const hungUp = Promise.withResolvers<unknown>()
    const link = await host((_, response) => {
      response.on('close', hungUp.resolve).writeHead(404).write('x')
    })
    expect(await refusalOf(keepLink(link))).toMatchObject({ failure: 'media_upload_failed' })
    await inTime(hungUp.promise, 2_000)
  })
})

describe('an id', () => {
  async function upload(changes: { organizationId?: string; mimeType?: string } = {}) {
    const id = newId('med')
    const file = { fileKey: await reserveFile(app.sql), mimeType: 'image/png', size: 1, sha256: '00', filename: null }
    const row = { organizationId, id, phoneNumberId, source: 'upload', ...file, ...changes } as const
    await app.sql.begin(async (tx) => {
      await tx`delete from unclaimed_files`
      await insertMedia(tx, [row])
    })
    return { id, fileKey: file.fileKey }
  }
  const keepId = (id: string, kind: MediaKind = 'image') => keepMedia(app, sender(), kind, { id }, 'image.id')

  test('of ours is found, one of the platform is passed on', async () => {
    const { id } = await upload()
    expect(await keepId(id)).toEqual({ mediaId: id, mimeType: 'image/png', filename: null })
    expect(await keepId('1037543291543636')).toEqual({ upstreamId: '1037543291543636' })
  })

  test('that is unknown, expired, of somebody else, or of a link is refused alike', async () => {
    const expired = await upload()
    await app.sql`update media set expires_at = now() - interval '1 ms' where id = ${expired.id}`
    const others = await upload({ organizationId: newId('org') })
    const linked = await keepLink(await serving('image/png', png()))
    const ofLink = 'mediaId' in linked ? linked.mediaId : ''
    for (const id of [newId('med'), 'med_x', expired.id, others.id, ofLink]) {
      expect(await refusalOf(keepId(id))).toMatchObject({ failure: 'invalid_field_value', param: 'image.id' })
    }
  })

  test('of another kind is refused', async () => {
    const { id } = await upload({ mimeType: 'video/mp4' })
    expect(await refusalOf(keepId(id))).toMatchObject({ failure: 'media_upload_failed', param: 'image.id' })
  })

  test('goes when its time is over and no message names it, and its file after it', async () => {
    const [unused, used, young] = [await upload(), await upload(), await upload()]
    await app.send('with a file').then(({ id }) => app.sql`update messages set media_id = ${used.id} where id = ${id}`)
    for (const { fileKey } of [unused, used]) await app.media.store.put(fileKey, (async function* () {})())
    await app.sql`update media set expires_at = now() - interval '1 ms', sweep_at = now() where id in (${unused.id}, ${used.id})`
    const named = async () =>
      (await app.sql`select id from media where id in (${unused.id}, ${used.id})`).map((r) => r['id'])
    await sweepMedia(app.sql)
    expect(await named()).toEqual([used.id])
    expect(await keepId(young.id)).toMatchObject({ mediaId: young.id })
    const sweep = startFileSweep(app)
    await expect.poll(() => isStored(unused.fileKey)).toBe(false)
    expect(await isStored(used.fileKey)).toBe(true)

    await app.sql.begin(async (tx) => {
      await tx`delete from messages where media_id = ${used.id}`
      await deleteMediaOf(tx, [{ organizationId, mediaId: used.id }])
    })
    expect(await named()).toEqual([])
    sweep.wake()
    await expect.poll(() => isStored(used.fileKey)).toBe(false)
    await sweep.stop()
  })

  test('that is just being copied goes after its copy: who deletes it holds nothing that the copy waits for', async () => {
    const { id } = await upload()
    await app.sql`update media set sweep_at = null where id = ${id}`
    await app.sql`
      insert into media_copies (organization_id, phone_number_id, media_id, lane, upstream_media_id, event_due_at)
      values (${organizationId}, ${phoneNumberId}, ${id}, 'nobody works on it', '1', 'infinity')
    `
    const deleting: Promise<unknown>[] = []
    await app.sql.begin(async (tx) => {
      await tx`select from media_copies where media_id = ${id} for update`
      deleting.push(app.sql.begin((other) => deleteMediaOf(other, [{ organizationId, mediaId: id }])))
      await untilSomebodyWaits(app.sql)
      await tx`update media set size = 1 where id = ${id}`
    })
    await Promise.all(deleting)
    expect(await app.sql`select from media where id = ${id}`).toEqual([])
  })

  test('may be sent for 30 days, and stays a day longer for a send that found it in time', async () => {
    const { id } = await upload()
    await sweepMedia(app.sql)
    expect(await keepId(id)).toMatchObject({ mediaId: id })
    const [times] = await app.sql`
      select expires_at = created_at + interval '30 days' as sendable, sweep_at > expires_at + interval '23 hours' as kept
      from media where id = ${id}
    `
    expect(times).toEqual({ sendable: true, kept: true })
  })

  test('that may still be sent stays when a message of it goes', async () => {
    const { id } = await upload()
    await app.sql.begin((tx) => deleteMediaOf(tx, [{ organizationId, mediaId: id }]))
    expect(await keepId(id)).toMatchObject({ mediaId: id })
  })

  test('a file that the store cannot delete now waits, and those behind it go', async () => {
    const keys = await Promise.all(Array.from({ length: 101 }, () => reserveFile(app.sql)))
    const [stuck = '', behind = ''] = [keys.at(0), keys.at(-1)]
    await app.media.store.put(behind, (async function* () {})())
    await app.sql`update unclaimed_files set due_at = now() - interval '1 hour'`
    await app.sql`update unclaimed_files set due_at = now() where file_key = ${behind}`
    const drop = (key: string) => (key === behind ? app.media.store.delete(key) : Promise.reject(new Error('away')))
    const media = { ...app.media, store: { ...app.media.store, delete: drop } }
    const sweep = startFileSweep({ ...app, media })
    await expect.poll(() => isStored(behind)).toBe(false)
    await sweep.stop()
    const [left] = await app.sql`select due_at > now() as waits from unclaimed_files where file_key = ${stuck}`
    expect(left).toEqual({ waits: true })
    await app.sql`delete from unclaimed_files`
  })

  test('a file that a row names is never swept, whatever stands among the unclaimed ones, nor is one in the making', async () => {
    const { fileKey } = await upload()
    await app.media.store.put(fileKey, (async function* () {})())
    await app.sql`insert into unclaimed_files (file_key, due_at) values (${fileKey}, now())`
    const other = await reserveFile(app.sql)
    await app.media.store.put(other, (async function* () {})())
    await app.sql`update unclaimed_files set due_at = now() where file_key = ${other}`
    const inTheMaking = await reserveFile(app.sql)
    await app.media.store.put(inTheMaking, (async function* () {})())
    const sweep = startFileSweep(app)
    await expect.poll(() => isStored(other)).toBe(false)
    await sweep.stop()
    expect(await isStored(fileKey)).toBe(true)
    expect(await isStored(inTheMaking)).toBe(true)
    await app.sql.begin((tx) => claimFile(tx, inTheMaking))
  })
})

test('a file whose time is over, which may be deleted at this moment, is not to be claimed', async () => {
  const fileKey = await reserveFile(app.sql)
  await app.sql`update unclaimed_files set due_at = now() where file_key = ${fileKey}`
  const claimed = app.sql.begin((tx) => claimFile(tx, fileKey))
  expect(await refusalOf(claimed)).toMatchObject({ failure: 'service_unavailable' })
})

test('whoever claims or discards a file leaves all others to be deleted', async () => {
  const [claimed, discarded, left] = [
    await reserveFile(app.sql),
    await reserveFile(app.sql),
    await reserveFile(app.sql),
  ]
  await app.sql.begin((tx) => claimFile(tx, claimed))
  await discardFile(app, discarded)
  const keys = await app.sql`select file_key from unclaimed_files where file_key in (${claimed}, ${discarded}, ${left})`
  expect(keys).toEqual([{ fileKey: left }])
})
