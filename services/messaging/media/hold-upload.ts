import { beginSurely } from '@app/shared/database/begin-surely.ts'
import type { TransactionSql } from '@app/shared/database/database.ts'
import { momentOf } from '@app/shared/database/moment-of.ts'
import { retryWhileAway } from '@app/shared/database/retry-while-away.ts'
import type { Core } from '../app.ts'
import type { OwnNumber } from '../senders/own-number.ts'
import { behaviourOf } from '../upstream/errors.ts'
import { type StoredFile, type UploadResult, uploadToPlatform } from './upload-to-platform.ts'

/** The platform forgets a file after 30 days. */
export const rememberedSeconds = 29 * 24 * 60 * 60
/** How long an upload is held without a renewal: what waits for one of an instance that died goes on within ten seconds. */
const leaseSeconds = 9
/** How long a database that is away is waited for. If another instance has begun meanwhile, the platform gets the file twice. */
const patienceMs = 15_000
/** How long a failure is the answer to later tries: a final refusal, and any other one (shorter than the first wait of a send). */
const refusedSeconds = 60
const failedSeconds = 3

/** A file of ours that the platform is to have for one number, and the token of that number. */
export interface FileOfNumber extends OwnNumber {
  mediaId: string
  token: string
}

/** The upload of a file. A failure is remembered for the token that was used: with another token it is worth another try. */
export interface Upload extends FileOfNumber {
  tokenHash: string
  /** performance.now */
  askedAt: number
}

export type Ways = Pick<Core, 'sql' | 'upstream' | 'media' | 'log' | 'meters'>

export const keyOf = ({ phoneNumberId, mediaId }: Pick<FileOfNumber, 'phoneNumberId' | 'mediaId'>) =>
  `${phoneNumberId}:${mediaId}`

/** It goes on, here or elsewhere. */
export const uploading = { kind: 'uploading' } as const

export type UpstreamMedia = UploadResult | typeof uploading

/** Uploads it, unless another process has begun to meanwhile: from the row on this one holds it. */
export async function uploadHeld(core: Ways, file: Upload): Promise<UpstreamMedia> {
  const { organizationId, phoneNumberId, mediaId, tokenHash } = file
  const claim = (tx: TransactionSql) => tx<Lease[]>`
    insert into media_uploads as u (organization_id, phone_number_id, media_id, held_until)
    values (${organizationId}, ${phoneNumberId}, ${mediaId}, now() + ${leaseSeconds} * interval '1 second')
    on conflict (organization_id, phone_number_id, media_id) do update
      set held_until = excluded.held_until, upstream_id = null, failure = null, expires_at = null
      where u.held_until <= now() and (
        u.expires_at is null or u.expires_at <= now()
        or u.failure is not null and u.failure ->> 'tokenHash' is distinct from ${tokenHash}
      )
    returning held_until::text
  `
  const [lease] = await beginSurely(core.sql, claim)
  return lease ? uploadOnce(core, file, lease) : uploading
}

/** As text, with all digits: whoever finds another value in the row does not hold the upload any more. */
interface Lease {
  heldUntil: string
}

async function uploadOnce(core: Ways, file: Upload, lease: Lease): Promise<UploadResult> {
  const { log, meters } = core
  const { organizationId, phoneNumberId, mediaId } = file
  let renewing: Promise<void> = Promise.resolve()
  const renewal = setInterval(
    () => {
      renewing = renew(core, file, lease)
    },
    (leaseSeconds * 1000) / 3,
  )
  const startedAt = performance.now()
  try {
    const result = await told(core, await upload(core, file), file)
    clearInterval(renewal)
    await renewing
    await retryWhileAway(() => keep(core, file, lease, result), performance.now() + patienceMs)
    const durationMs = Math.round(performance.now() - startedAt)
    const outcome = result.kind === 'unreachable' && result.isOurs ? 'unread' : result.kind
    const details = outcome === 'unread' && 'details' in result ? result.details : undefined
    meters.uploads.inc({ outcome })
    log[result.kind === 'ready' ? 'debug' : 'warn'](
      { organization: organizationId, number: phoneNumberId, media: mediaId, durationMs, outcome, details },
      'upload',
    )
    return result
  } finally {
    clearInterval(renewal)
  }
}

async function told({ sql }: Pick<Core, 'sql'>, result: UploadResult, { askedAt }: Upload): Promise<UploadResult> {
  if (result.kind !== 'refused') return result
  const at = await retryWhileAway(() => momentOf(sql, askedAt), performance.now() + patienceMs)
  return { ...result, askedAt: at.toISOString() }
}

/** A process that was frozen may have lost the upload: then what another one has stored since stays. */
const keep = (
  { sql }: Pick<Core, 'sql'>,
  { organizationId, phoneNumberId, mediaId, tokenHash }: Upload,
  lease: Lease,
  result: UploadResult,
) => sql`
  update media_uploads set held_until = '-infinity', upstream_id = ${result.kind === 'ready' ? result.id : null},
    failure = ${result.kind === 'ready' ? null : JSON.stringify({ ...result, tokenHash })}::text::jsonb,
    expires_at = now() + ${secondsKept(result)} * interval '1 second'
  where organization_id = ${organizationId} and phone_number_id = ${phoneNumberId} and media_id = ${mediaId}
    and held_until = ${lease.heldUntil}::text::timestamptz
`

async function upload(core: Pick<Core, 'sql' | 'upstream' | 'media'>, file: FileOfNumber): Promise<UploadResult> {
  const find = () => core.sql<(Omit<StoredFile, 'size'> & { size: string })[]>`
    select file_key, mime_type, size, filename from media
    where organization_id = ${file.organizationId} and id = ${file.mediaId} and file_key is not null
  `
  const [stored] = await retryWhileAway(find, performance.now() + patienceMs)
  if (!stored) return { kind: 'refused', code: 131053, details: 'The file is not stored any more.' }
  return uploadToPlatform(core, file, { ...stored, size: Number(stored.size) })
}

function secondsKept(result: UploadResult) {
  if (result.kind === 'ready') return rememberedSeconds
  return result.kind === 'refused' && behaviourOf(result.code, result).action === 'fail'
    ? refusedSeconds
    : failedSeconds
}

async function renew(
  { sql, log }: Pick<Core, 'sql' | 'log'>,
  { organizationId, phoneNumberId, mediaId }: FileOfNumber,
  lease: Lease,
) {
  try {
    const [renewed] = await sql<Lease[]>`
      update media_uploads set held_until = now() + ${leaseSeconds} * interval '1 second'
      where organization_id = ${organizationId} and phone_number_id = ${phoneNumberId} and media_id = ${mediaId}
        and held_until = ${lease.heldUntil}::text::timestamptz
      returning held_until::text
    `
    Object.assign(lease, renewed)
  } catch (err) {
    log.warn({ err }, 'the lease of an upload cannot be renewed')
  }
}
