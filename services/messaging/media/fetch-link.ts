import type { Readable } from 'node:stream'
import { abandon } from '@app/shared/files/abandon.ts'
import { notPublic } from '@app/shared/outside/egress.ts'
import { failureOf } from '@app/shared/outside/egress-error.ts'
import { type MediaKind, mediaLimits } from '@app/shared/files/media-kinds.ts'
import { Problem } from '@app/shared/api/problem.ts'
import { type ReceivedFile, receiveFile } from '@app/shared/files/receive-file.ts'
import { request } from 'undici'
import type { Core } from '../app.ts'
import { discardFile, reserveFile } from './unclaimed-files.ts'

/** From the name's look-up to the last byte. */
const fetchTimeoutMs = 5_000

type Ways = Pick<Core, 'sql' | 'log' | 'media'>

export interface Link {
  organizationId: string
  url: string
  kind: MediaKind
  /** The field that holds it. */
  param: string
  /** performance.now of the moment after which nobody waits. */
  deadline: number
}

interface FetchedFile extends ReceivedFile {
  /** To be claimed, or discarded. */
  fileKey: string
}

/**
 * Fetches a user's link into the store, through the guarded way out. A redirect is not followed. Throws
 * `media_upload_failed` for whatever is wrong with the link, and then nothing is stored. What gets no turn writes nothing, be it ever
 * so much: others want to reserve and keep files, too.
 */
export const fetchLink = (core: Ways, link: Link): Promise<FetchedFile> =>
  core.media.fetching.during(link.organizationId, async () => {
    const fileKey = await reserveFile(core.sql)
    try {
      return { fileKey, ...(await fetchNow(core, link, fileKey)) }
    } catch (err) {
      await discardFile(core, fileKey)
      throw err
    }
  })

async function fetchNow({ media }: Ways, { url, kind, param, deadline }: Link, fileKey: string) {
  const refused = (message: string) => new Problem('media_upload_failed', { param, message })
  const timeoutMs = Math.max(1, Math.floor(Math.min(fetchTimeoutMs, deadline - performance.now())))
  const signal = AbortSignal.timeout(timeoutMs)
  let body: Readable | undefined
  try {
    await media.egress.checkUrl(url, param)
    const answer = await request(url, {
      dispatcher: media.egress.dispatcher,
      headers: { accept: '*/*', 'accept-encoding': 'identity', 'user-agent': 'svc-media/1.0' },
      signal,
    })
    body = answer.body
    refuseAnswer(answer.statusCode, answer.headers, kind, refused)
    const contentType = answer.headers['content-type']
    if (contentType === undefined) throw refused('The link answers without a Content-Type.')
    return await receiveFile(media.store, fileKey, body, { contentType: String(contentType), kind, param })
  } catch (err) {
    throw problemOf(err, refused)
  } finally {
    if (body) abandon(body)
  }
}

type Refused = (message: string) => Problem

function refuseAnswer(status: number, headers: Record<string, unknown>, kind: MediaKind, refused: Refused) {
  if (status >= 300 && status < 400) throw refused('The link redirects: give the address that it leads to.')
  if (status !== 200) throw refused(`The link answers ${status}.`)
  const { maxBytes } = mediaLimits[kind]
  if (Number(headers['content-length'] ?? 0) > maxBytes) throw refused(`The file is larger than ${maxBytes} bytes.`)
  if ((headers['content-encoding'] ?? 'identity') !== 'identity')
    throw refused('The link answers with a Content-Encoding that was not asked for.')
}

function problemOf(err: unknown, refused: Refused) {
  if (err instanceof Problem) return err.failure === 'invalid_field_value' ? refused(err.message) : err
  const { failure, message, isOurs } = failureOf(err)
  if (isOurs) return new Problem('service_unavailable', { cause: err })
  if (failure === 'timeout') return refused(`The link did not answer whole within ${fetchTimeoutMs / 1000} s.`)
  return refused(words[failure] ?? message)
}

const words: Record<string, string> = {
  blocked_address: `The link ${notPublic}`,
  dns_error: 'The host of the link could not be resolved.',
  connection_refused: 'The host of the link refused the connection.',
  invalid_response: 'The host of the link does not answer in valid HTTP.',
}
