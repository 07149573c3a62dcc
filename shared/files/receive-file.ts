import { collecting } from './collecting.ts'
import { kindOf, type MediaKind, maxMediaBytes, mediaLimits } from './media-kinds.ts'
import { Problem } from '../api/problem.ts'
import { headBytes, isWebp, plainType, settleType, whyUnfit } from './settle-type.ts'
import type { Kept, Store } from '../store/store.ts'

export interface ReceivedFile extends Kept {
  mimeType: string
  kind: MediaKind
}

interface Options {
  /** The `Content-Type` that came with it. */
  contentType: string | undefined
  /** What it may be as well, when it is not that: a `Content-Type`, or '' for whatever its bytes say. */
  orType?: string | undefined
  /** The kind that it must be; any unless given. */
  kind?: MediaKind
  /** For the refusal. */
  param?: string | undefined
  /** For the refusal of a type that no file can have, where another field says it. */
  typeParam?: string | undefined
  /** What the whole must not exceed, whatever its kind; `tooLarge` is thrown. */
  tooLarge?: () => Problem
}

/**
 * Takes a file that a stranger gives into the store: its first bytes decide whether it is one that the platform takes,
 * before anything is kept, and its kind how large it may be. Refused: `media_upload_failed`, and nothing is kept. A store that is
 * away: `service_unavailable`.
 */
export async function receiveFile(
  store: Store,
  fileKey: string,
  bytes: AsyncIterable<Uint8Array>,
  { contentType, orType, kind: wanted, param, typeParam = param, tooLarge }: Options,
): Promise<ReceivedFile> {
  const refused = (message: string, of = param) => new Problem('media_upload_failed', { param: of, message })
  const declared = plainType(contentType)
  if (declared === 'image/webp') throw refused(webp)
  const { head, whole } = await peek(bytes, headBytes)
  if (isWebp(head)) throw refused(webp)
  if (head.length === 0) throw refused('The file is empty.')
  const otherwise = plainType(orType ?? contentType)
  const mimeType = (await settleType(head, declared)) ?? (await settleType(head, otherwise))
  const kind = mimeType === null ? null : kindOf(mimeType)
  if (mimeType === null || kind === null) {
    const isNoType = otherwise !== '' && kindOf(otherwise) === null
    throw refused(await whyUnfit(head, otherwise), isNoType ? typeParam : param)
  }
  if (wanted !== undefined && kind !== wanted) throw refused(`The file is ${mimeType}, which is no ${wanted}.`)
  const { maxBytes } = mediaLimits[kind]
  const beyond =
    maxBytes === maxMediaBytes && tooLarge ? tooLarge : () => refused(`The file is larger than ${maxBytes} bytes.`)
  return { ...(await putWhole(store, fileKey, collecting(atMost(whole, maxBytes, beyond)))), mimeType, kind }
}

/** What the bytes throw is thrown on; a store that fails is away. */
async function putWhole(store: Store, fileKey: string, bytes: AsyncIterable<Uint8Array>): Promise<Kept> {
  const ofBytes = new Set<unknown>()
  try {
    return await store.put(fileKey, noting(bytes, ofBytes))
  } catch (err) {
    throw ofBytes.has(err) ? err : new Problem('service_unavailable', { cause: err })
  }
}

async function* noting(bytes: AsyncIterable<Uint8Array>, thrown: Set<unknown>): AsyncGenerator<Uint8Array> {
  try {
    yield* bytes
  } catch (err) {
    thrown.add(err)
    throw err
  }
}

const webp = 'WebP images are for stickers alone: send JPEG or PNG.'

/** The first bytes of a stream, and the same stream from its start. */
async function peek(bytes: AsyncIterable<Uint8Array>, wantedBytes: number) {
  const iterator = bytes[Symbol.asyncIterator]()
  const chunks: Uint8Array[] = []
  let length = 0
  while (length < wantedBytes) {
    const { done, value } = await iterator.next()
    if (done) break
    chunks.push(value)
    length += value.length
  }
  const head = Buffer.concat(chunks)
  return { head, whole: rest(head, iterator) }
}

async function* rest(head: Uint8Array, iterator: AsyncIterator<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield head
    for (;;) {
      const { done, value } = await iterator.next()
      if (done) return
      yield value
    }
  } finally {
    await iterator.return?.()
  }
}

/** The same bytes; throws what `beyond` makes as soon as there are more of them. */
export async function* atMost(
  bytes: AsyncIterable<Uint8Array>,
  maxBytes: number,
  beyond: () => Error,
): AsyncGenerator<Uint8Array> {
  let size = 0
  for await (const chunk of bytes) {
    size += chunk.length
    if (size > maxBytes) throw beyond()
    yield chunk
  }
}
