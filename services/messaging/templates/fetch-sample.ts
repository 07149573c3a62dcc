import { abandon } from '@app/shared/files/abandon.ts'
import { type MediaKind } from '@app/shared/files/media-kinds.ts'
import { Problem } from '@app/shared/api/problem.ts'
import type { Core } from '../app.ts'
import { fetchLink, type Link } from '../media/fetch-link.ts'
import { discardFile } from '../media/unclaimed-files.ts'
import type { SampleFile } from '../upstream/upload-sample.ts'

/** What a header's sample may be, by the header's format. */
const kinds: ReadonlyMap<string, MediaKind> = new Map([
  ['IMAGE', 'image'],
  ['VIDEO', 'video'],
  ['DOCUMENT', 'document'],
])

export const sampleKindOf = (format: string): MediaKind | undefined => kinds.get(format)

/**
 * Fetches a sample, as the link of a send is fetched, into a file that is there while `use` runs.
 * @throws `media_upload_failed` for whatever is wrong with the address or what it gives.
 */
export async function withSample<T>(
  core: Pick<Core, 'sql' | 'media' | 'log'>,
  link: Link,
  use: (file: SampleFile) => Promise<T>,
): Promise<T> {
  const { fileKey, mimeType, size } = await fetchLink(core, link)
  try {
    const body = await core.media.store.open(fileKey)
    if (!body) throw new Problem('service_unavailable', { cause: new Error(`${fileKey} is not in the store`) })
    try {
      return await use({ body, bytes: size, mimeType, name: nameOf(link) })
    } finally {
      abandon(body)
    }
  } finally {
    await discardFile(core, fileKey)
  }
}

/** The last segment of the address, as far as every system can have it. */
const nameOf = ({ url, kind }: Link) =>
  URL.parse(url)
    ?.pathname.split('/')
    .at(-1)
    ?.replaceAll(/[^\w.-]+/g, '_')
    .slice(-100) || kind
