import { until } from '@app/test/until.ts'
import { beforeAll, expect, test } from 'vitest'
import type { TestMessaging } from '../testing/app.ts'
import { json, unknownObject } from '../testing/media-platform.ts'
import { messagingWithPictures } from '../testing/pictures.ts'

const pictures = messagingWithPictures()
const { picture, told, locationOf, hurry } = pictures
let app: TestMessaging
beforeAll(() => void ({ app } = pictures))

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
