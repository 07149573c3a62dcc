import { getMessageMedia as contract } from '@app/shared/contracts/media.ts'
import { newId } from '@app/shared/values/ids.ts'
import { until } from '@app/test/until.ts'
import { beforeAll, expect, test } from 'vitest'
import { getMessage } from '../messages/get-message.ts'
import type { TestMessaging } from '../testing/app.ts'
import { inboundValue, platformOf } from '../testing/callbacks.ts'
import { json, unknownObject } from '../testing/media-platform.ts'
import { caller, input, messagingWithPictures } from '../testing/pictures.ts'
import { findMedia } from './find-media.ts'
import { getMessageMedia } from './get-message-media.ts'

const pictures = messagingWithPictures()
const { picture, rowOf, told, locationOf, late, hurry } = pictures
let app: TestMessaging
beforeAll(() => void ({ app } = pictures))

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

test('while one file is told of as late, what is to be told of another waits on, and has its file', async () => {
  const gate = Promise.withResolvers<void>()
  app.files.answerWith((_call, response) => void gate.promise.then(() => json(response, { error: { code: 2 } }, 503)))
  const [slow, next] = [await picture(), await picture()]
  await app.sql`
    update media_copies
    set event_due_at = now() + case upstream_media_id when ${slow.mediaId} then interval '0' else interval '1 hour' end
  `
  await until(async () => expect(await told(slow.upstreamId)).toMatchObject([{ media_status: 'pending' }]))
  expect(await told(next.upstreamId)).toEqual([])
  app.files.answerWith(null)
  gate.resolve()
  await until(async () => {
    await hurry()
    expect(await told(next.upstreamId)).toMatchObject([{ media_status: 'ready' }])
  })
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
