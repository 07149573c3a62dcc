import { newId } from '@app/shared/values/ids.ts'
import { kindOf, type MediaKind } from '@app/shared/files/media-kinds.ts'
import { invalidField, Problem } from '@app/shared/api/problem.ts'
import type { Core } from '../app.ts'
import type { OwnNumber } from '../senders/own-number.ts'
import { fetchLink } from './fetch-link.ts'
import { insertMedia } from './media.ts'
import { claimFile, discardFile } from './unclaimed-files.ts'

/** Media of a send: a file of ours, or one that the platform has already. */
export type KeptMedia = { mediaId: string; mimeType: string; filename: string | null } | { upstreamId: string }

interface Sender extends OwnNumber {
  /** performance.now of the moment after which nobody waits. */
  deadline: number
}

/**
 * What a send's `link` or `id` names. A link is fetched into the store, within 5 s; `media_upload_failed` when it cannot be
 * or must not. An id is ours, or the platform's own and passed on. Refusals name `param`.
 */
export async function keepMedia(
  core: Pick<Core, 'sql' | 'log' | 'media'>,
  sender: Sender,
  kind: MediaKind,
  source: { link: string } | { id: string },
  param: string,
): Promise<KeptMedia> {
  if ('link' in source) return keepLink(core, sender, kind, source.link, param)
  if (!source.id.startsWith('med_')) return { upstreamId: source.id }
  return findUpload(core, sender, kind, source.id, param)
}

async function findUpload(
  { sql }: Pick<Core, 'sql'>,
  { organizationId }: Sender,
  kind: MediaKind,
  id: string,
  param: string,
): Promise<KeptMedia> {
  const [row] = await sql<{ mimeType: string; filename: string | null }[]>`
    select mime_type, filename from media
    where organization_id = ${organizationId} and id = ${id} and source = 'upload' and expires_at > now()
  `
  if (!row) throw invalidField(param, `${param} names no uploaded file, or one that has expired.`)
  if (kindOf(row.mimeType) !== kind)
    throw new Problem('media_upload_failed', { param, message: `The file is ${row.mimeType}, which is no ${kind}.` })
  return { mediaId: id, ...row }
}

async function keepLink(
  core: Pick<Core, 'sql' | 'log' | 'media'>,
  { organizationId, phoneNumberId, deadline }: Sender,
  kind: MediaKind,
  url: string,
  param: string,
): Promise<KeptMedia> {
  const link = { organizationId, url, kind, param, deadline }
  const { fileKey, mimeType, size, sha256 } = await fetchLink(core, link)
  try {
    const id = newId('med')
    const filename = nameIn(url)
    const file = { fileKey, mimeType, size, sha256, filename }
    await core.sql.begin(async (tx) => {
      await claimFile(tx, fileKey)
      await insertMedia(tx, [{ organizationId, id, phoneNumberId, source: 'link', ...file }])
    })
    return { mediaId: id, mimeType, filename }
  } catch (err) {
    await discardFile(core, fileKey)
    throw err
  }
}

/** The last part of a link's path, when it looks like a file's name. */
function nameIn(url: string): string | null {
  const last = URL.parse(url)?.pathname.split('/').at(-1) ?? ''
  try {
    const name = decodeURIComponent(last)
    return /^[^\p{Cc}/\\]{1,200}\.\w{1,10}$/u.test(name) ? name : null
  } catch {
    return null
  }
}
