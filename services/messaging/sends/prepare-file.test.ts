import { newId } from '@app/shared/values/ids.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { insertMedia } from '../media/media.ts'
import { type TestMessaging, testMessaging } from '../testing/app.ts'
import { draftOf } from './draft.ts'
import { prepareFile } from './prepare-file.ts'

let app: TestMessaging
beforeAll(async () => {
  app = await testMessaging()
})
afterAll(() => app.close())

async function uploaded(mimeType: string) {
  const id = newId('med')
  const row = {
    ...app.number,
    id,
    source: 'upload',
    fileKey: id,
    mimeType,
    size: 1,
    sha256: '00',
    filename: null,
  } as const
  await app.sql.begin((tx) => insertMedia(tx, [row]))
  return id
}

function prepare(id: string, voice?: boolean) {
  const draft = draftOf({
    messaging_product: 'chat',
    to: '+15550123456',
    type: 'audio',
    audio: { id, voice, link: undefined },
  })
  return prepareFile(app, app.number, 'audio', draft, performance.now() + 5_000)
}

test('a voice note is Ogg Opus; other audio is refused as one, and sent without the word', async () => {
  const [ogg, mpeg] = [await uploaded('audio/ogg'), await uploaded('audio/mpeg')]
  expect(await prepare(ogg, true)).toMatchObject({ block: { id: ogg, voice: true }, media: { id: ogg } })
  await expect(prepare(mpeg, true)).rejects.toMatchObject({
    failure: 'invalid_field_value',
    param: 'audio.voice',
    message: expect.stringContaining('audio/mpeg') as string,
  })
  expect(await prepare(mpeg, false)).toMatchObject({ media: { id: mpeg } })
  expect(await prepare(mpeg)).toMatchObject({ media: { id: mpeg } })
})

test('a file of the platform, whose type is not known here, is its own to judge', async () => {
  expect(await prepare('1037', true)).toEqual({ block: { id: '1037', voice: true }, media: null })
})
