import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  type FileOfNumber,
  keyOf,
  type Upload,
  uploadHeld,
  uploading,
  type UpstreamMedia,
  type Ways,
} from './hold-upload.ts'
import type { UploadResult } from './upload-to-platform.ts'

/**
 * The platform's id of a file for one number: remembered from an earlier upload, or from one that is begun here. After
 * `waitMs` the upload goes on by itself (`uploading`), and whoever asks again learns what it came to.
 */
export async function upstreamMediaId(core: Ways, file: FileOfNumber, waitMs: number): Promise<UpstreamMedia> {
  const tokenHash = createHash('sha256').update(file.token).digest('base64url')
  const key = `${keyOf(file)}:${tokenHash}`
  const askedAt = performance.now()
  const upload = core.media.uploading.get(key) ?? begin(core, { ...file, tokenHash, askedAt }, key)
  const timer = new AbortController()
  const late = sleep(waitMs, uploading, { signal: timer.signal }).catch(() => uploading)
  return Promise.race([upload, late]).finally(() => timer.abort())
}

function begin(core: Ways, file: Upload, key: string): Promise<UpstreamMedia> {
  const held = async () => (core.media.stopping.signal.aborted ? uploading : uploadHeld(core, file))
  const upload = recall(core, file)
    .then((known) => known ?? core.media.inLine(file.organizationId, held))
    .catch((err: unknown) => {
      core.log.warn({ err, media: file.mediaId }, 'a file cannot be uploaded to the platform')
      return { kind: 'unreachable', details: 'Something of ours was away.', isOurs: true } as const
    })
    .finally(() => core.media.uploading.delete(key))
  core.media.uploading.set(key, upload)
  return upload
}

/** What an upload came to, or that one runs elsewhere; null: nobody knows of one. */
async function recall({ sql }: Pick<Ways, 'sql'>, file: Upload): Promise<UpstreamMedia | null> {
  const { organizationId, phoneNumberId, mediaId, tokenHash } = file
  const [known] = await sql<{ upstreamId: string | null; failure: UploadResult | null; held: boolean }[]>`
    select upstream_id, case when failure ->> 'tokenHash' = ${tokenHash} then failure - 'tokenHash' end as failure,
      held_until > now() as held from media_uploads
    where organization_id = ${organizationId} and phone_number_id = ${phoneNumberId} and media_id = ${mediaId}
      and (held_until > now() or expires_at > now())
  `
  if (known?.upstreamId) return { kind: 'ready', id: known.upstreamId }
  if (known?.failure) return known.failure
  return known?.held ? uploading : null
}
