import { randomBytes } from 'node:crypto'
import { Readable } from 'node:stream'
import { abandon } from '@app/shared/files/abandon.ts'
import { collecting } from '@app/shared/files/collecting.ts'
import { isUnknownObject, jsonOf, refusalIn } from '@app/shared/outside/upstream-exchange.ts'
import { callerHeaders } from '@app/shared/outside/upstream.ts'
import { request } from 'undici'
import { z } from 'zod'
import type { Core } from '../app.ts'
import { theirProduct } from '../upstream/words.ts'

/** For 100 MB on a slow line. */
const uploadTimeoutMs = 120_000

/** What an upload to the platform came to. It can be repeated without harm, so nothing is unknown. */
export type UploadResult =
  | { kind: 'ready'; id: string }
  /** `askedAt`: when the platform was asked; the number may have been connected anew since. */
  | {
      kind: 'refused'
      code: number
      details: string
      isUnknownNumber?: boolean
      mayPass?: boolean
      askedAt?: string
    }
  /** `isOurs`: the file could not be read where it is stored. */
  | { kind: 'unreachable'; details: string; isOurs?: boolean }

export interface StoredFile {
  fileKey: string
  mimeType: string
  size: number
  filename: string | null
}

const Uploaded = z.object({ id: z.string().min(1) })

/** Streams a file from the store to the platform, as a multipart form. Never throws. */
export async function uploadToPlatform(
  { upstream, media }: Pick<Core, 'upstream' | 'media'>,
  { phoneNumberId, token }: { phoneNumberId: string; token: string },
  file: StoredFile,
): Promise<UploadResult> {
  let bytes: Readable | null = null
  try {
    const opened = await openStored(media, file)
    if ('kind' in opened) return opened
    bytes = opened
    const { head, tail, contentType } = formOf(file)
    const { statusCode, body } = await request(upstream.urlOf(`/${phoneNumberId}/media`, token), {
      method: 'POST',
      dispatcher: media.agent,
      headers: {
        ...callerHeaders(token),
        'content-type': contentType,
        'content-length': String(head.length + file.size + tail.length),
      },
      body: Readable.from(joined(head, collecting(bytes), tail), { objectMode: false }),
      headersTimeout: uploadTimeoutMs,
      signal: AbortSignal.any([AbortSignal.timeout(uploadTimeoutMs), media.stopping.signal]),
    })
    return read(statusCode, await body.text())
  } catch (err) {
    return { kind: 'unreachable', details: describe(err), ...(bytes?.errored && { isOurs: true }) }
  } finally {
    // If the upload failed early, nobody has begun to read the bytes, and nobody else would close them.
    if (bytes) abandon(bytes)
  }
}

/**
 * The row says that the file is stored, so a store without it lags, has lost it, or is not the one it should be (a folder that
 * is not mounted): it may be otherwise in a moment.
 */
async function openStored({ store }: Core['media'], { fileKey }: StoredFile): Promise<Readable | UploadResult> {
  const unread = (details: string) => ({ kind: 'unreachable', details, isOurs: true }) as const
  try {
    return (await store.open(fileKey)) ?? unread('The store does not have the file.')
  } catch (err) {
    return unread(describe(err))
  }
}

const describe = (err: unknown) => (err instanceof Error ? err.message : String(err))

function read(status: number, text: string): UploadResult {
  const value = jsonOf(text)
  const uploaded = Uploaded.safeParse(value)
  if (status < 300 && uploaded.success) return { kind: 'ready', id: uploaded.data.id }
  const refusal = refusalIn(value)
  if (!refusal) return { kind: 'unreachable', details: `an answer ${status} that is not the platform's` }
  const { code, details, mayPass } = refusal
  const marks = { ...(isUnknownObject(refusal) && { isUnknownNumber: true }), ...(mayPass && { mayPass }) }
  return { kind: 'refused', code, details, ...marks }
}

/** What stands before and after the file's bytes. */
function formOf({ mimeType, filename }: StoredFile) {
  const boundary = `svc-${randomBytes(16).toString('hex')}`
  const field = (name: string, value: string) =>
    `--${boundary}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`
  const name = (filename ?? 'file').replaceAll(/["\\\p{Cc}]/gu, '_')
  const head =
    field('messaging_product', theirProduct) +
    field('type', mimeType) +
    `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="${name}"\r\nContent-Type: ${mimeType}\r\n\r\n`
  return {
    head: Buffer.from(head),
    tail: Buffer.from(`\r\n--${boundary}--\r\n`),
    contentType: `multipart/form-data; boundary=${boundary}`,
  }
}

async function* joined(head: Uint8Array, bytes: AsyncIterable<Uint8Array>, tail: Uint8Array) {
  yield head
  yield* bytes
  yield tail
}
