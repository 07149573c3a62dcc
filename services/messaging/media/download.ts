import { abandon } from '@app/shared/files/abandon.ts'
import { collecting } from '@app/shared/files/collecting.ts'
import { failureOf } from '@app/shared/outside/egress-error.ts'
import { maxMediaBytes } from '@app/shared/files/media-kinds.ts'
import { atMost } from '@app/shared/files/receive-file.ts'
import type { Kept } from '@app/shared/store/store.ts'
import { isUnknownObject, jsonOf, type Refusal, refusalIn } from '@app/shared/outside/upstream-exchange.ts'
import { callerHeaders } from '@app/shared/outside/upstream.ts'
import { request } from 'undici'
import { z } from 'zod'
import type { Core } from '../app.ts'

const lookUpTimeoutMs = 15_000
/** For 100 MB on a slow line. */
const downloadTimeoutMs = 120_000

export interface PlatformMedia {
  phoneNumberId: string
  token: string
  upstreamMediaId: string
  /** As the callback said it. */
  sha256: string | null
}

/** What a copy came to. `gone`: the platform does not have the file. `unknown`: it does not have it, or does not show it to the token. */
export type Download =
  | { kind: 'copied'; file: Kept & { mimeType: string | null } }
  | { kind: 'gone' | 'unknown'; details: string }
  | { kind: 'failed'; details: string }

type Ways = Pick<Core, 'upstream' | 'media'>

const Found = z.object({
  url: z.url(),
  mime_type: z.string().optional().catch(undefined),
  sha256: z.string().optional().catch(undefined),
  file_size: z.coerce.number().optional().catch(undefined),
})

/** Copies a file of the platform's into the store: looks its address up, fetches it, checks its hash. Never throws. */
export async function download(core: Ways, media: PlatformMedia, fileKey: string): Promise<Download> {
  try {
    // An address lives 5 minutes, and a dead one answers 404.
    const first = await fetchOnce(core, media, fileKey)
    return first === 'dead' ? await orFailed(fetchOnce(core, media, fileKey)) : first
  } catch (err) {
    const details = err instanceof Error ? err.message : String(err)
    return { kind: 'failed', details: `${failureOf(err).failure}: ${details}` }
  }
}

async function orFailed(fetched: Promise<Download | 'dead'>): Promise<Download> {
  const result = await fetched
  return result === 'dead' ? { kind: 'failed', details: 'the address was dead twice' } : result
}

async function fetchOnce(core: Ways, media: PlatformMedia, fileKey: string): Promise<Download | 'dead'> {
  const found = await lookUp(core, media)
  if ('kind' in found) return found
  if ((found.file_size ?? 0) > maxMediaBytes) return { kind: 'gone', details: `${found.file_size} bytes are too many` }
  const { statusCode, body } = await request(found.url, wayTo(core, found.url, media.token))
  try {
    if (statusCode === 404) return 'dead'
    if (statusCode !== 200) return { kind: 'failed', details: `${placeOf(core, found.url)} answered ${statusCode}` }
    const kept = await core.media.store.put(fileKey, collecting(atMost(body, maxMediaBytes, tooLarge)))
    const isWhole = [media.sha256, found.sha256].every((said) => isSame(said, kept.sha256))
    if (!isWhole) return { kind: 'failed', details: 'the bytes have another hash' }
    return { kind: 'copied', file: { ...kept, mimeType: found.mime_type ?? null } }
  } catch (err) {
    if (err instanceof TooLarge) return { kind: 'gone', details: err.message }
    throw err
  } finally {
    abandon(body)
  }
}

class TooLarge extends Error {
  override readonly name = 'TooLarge'
}
const tooLarge = () => new TooLarge(`more than ${maxMediaBytes} bytes`)

async function lookUp({ upstream, media }: Ways, { phoneNumberId, token, upstreamMediaId }: PlatformMedia) {
  const url = upstream.urlOf(`/${encodeURIComponent(upstreamMediaId)}?phone_number_id=${phoneNumberId}`, token)
  const { statusCode, body } = await request(url, {
    dispatcher: upstream.agent,
    headers: callerHeaders(token),
    signal: AbortSignal.any([AbortSignal.timeout(lookUpTimeoutMs), media.stopping.signal]),
  })
  const value = jsonOf(await body.text())
  const found = Found.safeParse(value)
  if (statusCode === 200 && found.success) return found.data
  const refusal = refusalIn(value)
  const details = refusal ? `(#${refusal.code}) ${refusal.message}` : ''
  return {
    kind: refusal ? kindOf(refusal) : 'failed',
    details: `the look-up answered ${statusCode} ${details}`,
  } as const
}

const cannotDownload = 131052

function kindOf(refusal: Refusal) {
  if (refusal.code === cannotDownload) return 'gone'
  return isUnknownObject(refusal) ? 'unknown' : 'failed'
}

/** The bearer goes to origins of the platform alone; any other address is a stranger's, and goes the guarded way. */
function wayTo({ media }: Ways, url: string, token: string) {
  const signal = AbortSignal.any([AbortSignal.timeout(downloadTimeoutMs), media.stopping.signal])
  if (!media.bearerOrigins.has(new URL(url).origin))
    return { dispatcher: media.egress.dispatcher, signal, headers: callerHeaders(null) }
  return { dispatcher: media.agent, signal, headers: callerHeaders(token) }
}

/** An address for the log: its origin alone, since whoever has the whole address may read the file. */
function placeOf({ media }: Ways, url: string) {
  const { origin } = new URL(url)
  return media.bearerOrigins.has(origin) ? origin : `${origin}, which is not one of UPSTREAM_MEDIA_ORIGINS,`
}

/** The platform says hashes in hex or in base64; what is neither says nothing. */
function isSame(said: string | null | undefined, sha256: string) {
  if (!said) return true
  if (/^[0-9a-f]{64}$/i.test(said)) return said.toLowerCase() === sha256
  const bytes = Buffer.from(said, 'base64')
  return bytes.length !== 32 || bytes.toString('hex') === sha256
}
