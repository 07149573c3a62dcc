import { createHash, randomBytes } from 'node:crypto'
import type { Caller } from '@app/shared/api/contract.ts'
import { toProblem } from '@app/shared/api/problem.ts'
import { newId } from '@app/shared/values/ids.ts'
import { until } from '@app/test/until.ts'
import { afterAll, beforeAll, beforeEach, expect } from 'vitest'
import { getMessageMedia } from '../media/get-message-media.ts'
import { organizationId, phoneNumberId, type TestMessaging, testMessaging } from './app.ts'
import { inboundValue, platformOf } from './callbacks.ts'

interface Told {
  svc: { media_url: string | null; media_status: string; message_id: string }
}

/** Has a minute from whenever it asks: the files of a worker share this module. */
export const caller: Caller = {
  organizationId,
  keyId: newId('key'),
  requestId: newId('req'),
  get deadline() {
    return performance.now() + 60_000
  },
  traceparent: '',
}

/** What is asked of a message. */
export const input = (id: string) => ({ params: { phone_number_id: phoneNumberId, id }, query: {}, body: undefined })

/** The service for the tests of a file, to which customers send pictures; there once they run. */
export function messagingWithPictures() {
  const it = {} as { app: TestMessaging }
  beforeAll(async () => {
    it.app = await testMessaging()
  })
  afterAll(() => it.app.close())
  beforeEach(() => {
    it.app.files.answerWith(null)
    it.app.files.calls.length = 0
  })

  const rowOf = async (upstreamId: string) =>
    (
      await it.app.sql<
        { id: string; mediaId: string }[]
      >`select id, media_id from messages where upstream_id = ${upstreamId}`
    )[0]

  let count = 0
  /** A customer sends a picture; the platform keeps it unless `known` is false. */
  async function picture({ known = true, sha256 = true, more = {} } = {}) {
    const n = ++count
    const bytes = randomBytes(50_000)
    const mediaId = `90000${n}`
    if (known) it.app.files.sent.set(mediaId, { bytes, mimeType: 'image/jpeg' })
    const hash = createHash('sha256').update(bytes).digest('base64')
    const image = { id: mediaId, mime_type: 'image/jpeg', caption: 'Look', ...(sha256 && { sha256: hash }), ...more }
    const upstreamId = `wamid.PICTURE${n}`
    await platformOf(it.app).messages(inboundValue(upstreamId, '', { type: 'image', image, text: undefined }))
    await until(async () => expect(await rowOf(upstreamId)).toBeDefined())
    return { upstreamId, mediaId, bytes, id: (await rowOf(upstreamId))?.id ?? '' }
  }

  return Object.assign(it, {
    rowOf,
    picture,
    told: async (upstreamId: string) =>
      (await it.app.events())
        .filter(({ id }) => id === upstreamId)
        .map(({ payload }) => (payload as unknown as Told).svc),
    /** The address of a message's file, or why there is none. */
    locationOf: async (id: string) => {
      const answer = await getMessageMedia(it.app, input(id), caller).catch(toProblem)
      return 'location' in answer ? answer.location : answer
    },
    /** Lets the time pass for which what is told waits for its file. */
    late: () => it.app.sql`update media_copies set event_due_at = now()`,
    /** Lets the time until the next tries pass. */
    hurry: async () => {
      await it.app.sql`
        with c as (update media_copies set due_at = now() where begun_at is null)
        update media_lanes set due_at = now(), arrivals = arrivals + 1
      `
      it.app.copier.wake()
    },
  })
}
