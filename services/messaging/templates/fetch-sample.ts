import { createWriteStream } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Egress } from '@app/shared/egress.ts'
import { failureOf } from '@app/shared/egress-error.ts'
import { Problem } from '@app/shared/problem.ts'
import { request } from 'undici'
import type { SampleFile } from '../upstream/upload-sample.ts'

type SampleKind = 'IMAGE' | 'VIDEO' | 'DOCUMENT'

/** From the name's look-up to the last byte. */
const fetchTimeoutMs = 5_000

const mebibyte = 1024 * 1024

/** What the platform takes as a header's sample, and how big (its documentation of media). */
const accepted: Record<SampleKind, { bytes: number; types: RegExp }> = {
  IMAGE: { bytes: 5 * mebibyte, types: /^image\/(jpeg|png)$/ },
  VIDEO: { bytes: 16 * mebibyte, types: /^video\/(mp4|3gpp)$/ },
  DOCUMENT: {
    bytes: 100 * mebibyte,
    types: /^(text\/plain|application\/(pdf|msword|vnd\.(ms-(excel|powerpoint)|openxmlformats-officedocument\..+)))$/,
  },
}

export const isSampleKind = (format: string): format is SampleKind => Object.hasOwn(accepted, format)

/**
 * Fetches a sample into a temporary file, which is there while `use` runs.
 * @throws `invalid_field_value` for an address that we do not call, `media_upload_failed` for what it gives.
 */
export async function withSample<T>(
  egress: Egress,
  sample: { url: string; kind: SampleKind; param: string },
  use: (file: SampleFile) => Promise<T>,
): Promise<T> {
  const { url, kind, param } = sample
  await egress.checkUrl(url, param)
  const folder = await mkdtemp(join(tmpdir(), 'sample-'))
  try {
    const path = join(folder, 'file')
    const { mimeType, bytes } = await download(egress, url, kind, path).catch((err: unknown) => {
      const message = err instanceof Unfit ? err.message : failureOf(err).message
      throw new Problem('media_upload_failed', { param, message: `${param}: ${message}`, cause: err })
    })
    return await use({ path, bytes, mimeType, name: nameOf(url, kind) })
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** What came is no sample. */
class Unfit extends Error {
  override readonly name = 'Unfit'
}

async function download({ dispatcher }: Egress, url: string, kind: SampleKind, path: string) {
  const { bytes: most, types } = accepted[kind]
  const signal = AbortSignal.timeout(fetchTimeoutMs)
  const { statusCode, headers, body } = await request(url, { dispatcher, signal })
  try {
    if (statusCode !== 200) throw new Unfit(`The address answered ${statusCode}.`)
    const mimeType =
      String(headers['content-type'] ?? '')
        .split(';', 1)[0]
        ?.trim()
        .toLowerCase() ?? ''
    if (!types.test(mimeType)) throw new Unfit(`The content type is not one that ${kind} takes.`)
    const tooLarge = new Unfit(`The file is larger than ${most / mebibyte} MB.`)
    if (Number(headers['content-length'] ?? 0) > most) throw tooLarge
    let bytes = 0
    const counted = new Transform({
      transform(chunk: Buffer, _encoding, done) {
        bytes += chunk.length
        done(bytes > most ? tooLarge : null, chunk)
      },
    })
    await pipeline(body, counted, createWriteStream(path), { signal })
    if (bytes === 0) throw new Unfit('The file is empty.')
    return { mimeType, bytes }
  } finally {
    // Giving the rest up is told as an error, which would end the process if nobody listened.
    body.on('error', () => {}).destroy()
  }
}

/** The last segment of the address, as far as every system can have it. */
function nameOf(url: string, kind: SampleKind) {
  const name = basename(new URL(url).pathname)
    .replaceAll(/[^\w.-]+/g, '_')
    .slice(-100)
  return name || `sample-${kind.toLowerCase()}`
}
