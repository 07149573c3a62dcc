import type { TransactionSql } from '@app/shared/database/database.ts'
import { record, type Recorded } from '@app/shared/events/events.ts'
import type { Directive, Done } from '@app/shared/mailbox/mailbox.ts'
import type { Kept } from '@app/shared/store/store.ts'
import { lockCopies } from './delete-media.ts'
import { type MediaWays, urlOf } from './media.ts'
import type { WaitingCopy } from './waiting-copies.ts'
import { withMedia } from './with-media.ts'

/** What became of a copy. */
export type CopyOutcome =
  | { kind: 'copied'; fileKey: string; file: Kept & { mimeType: string | null } }
  /** `refused`: the platform said that it does not have it. */
  | { kind: 'again'; waitMs: number; refused?: true }
  | { kind: 'failed' }

type DoneCopy = Done<WaitingCopy, CopyOutcome>

/** Files and what is told of them are one commit; whoever began a copy again since has it now, and nothing is done here. */
export async function settleCopies(
  tx: TransactionSql,
  media: Pick<MediaWays, 'publicUrl'>,
  done: DoneCopy[],
): Promise<Directive[]> {
  // Each of the statements below locks some of them: without one order for all, they could deadlock with who deletes their messages.
  if (done.length > 1)
    await lockCopies(
      tx,
      done.map(({ item }) => ({ organization_id: item.organizationId, id: item.mediaId })),
    )
  const events = [...(await keepCopied(tx, media, done)), ...(await endFailed(tx, done))]
  await postpone(tx, done)
  await record(tx, events)
  return [...new Set(done.map(({ item }) => item.laneId))].map((laneId) => ({ laneId, waitMs: null }))
}

async function keepCopied(tx: TransactionSql, media: Pick<MediaWays, 'publicUrl'>, done: DoneCopy[]) {
  const rows = done.flatMap(({ item, outcome }) =>
    outcome?.kind === 'copied' ? [rowOf(item, outcome.fileKey, outcome.file)] : [],
  )
  if (rows.length === 0) return []
  const copied = await tx<{ opaque: string; event: Recorded | null }[]>`
    with u as (
      select * from json_to_recordset(${JSON.stringify(rows)}::text::json) as u(seq bigint, attempts int,
        organization_id text, media_id text, file_key text, size bigint, sha256 text, mime_type text)
    ), mine as (
      delete from media_copies c using u where c.seq = u.seq and c.attempts = u.attempts returning c.seq, c.event
    ), claimed as (
      delete from unclaimed_files f using u join mine using (seq) where f.file_key = u.file_key
    )
    update media m set file_key = u.file_key, size = u.size, sha256 = u.sha256, mime_type = coalesce(u.mime_type, m.mime_type)
    from u join mine using (seq) where m.organization_id = u.organization_id and m.id = u.media_id
    returning m.opaque, mine.event
  `
  return copied.flatMap(({ opaque, event }) => (event ? [withMedia(event, urlOf(media, opaque), 'ready')] : []))
}

const rowOf = (item: WaitingCopy, fileKey: string, { size, sha256, mimeType }: Kept & { mimeType: string | null }) => ({
  seq: item.seq,
  attempts: item.attempts,
  organization_id: item.organizationId,
  media_id: item.mediaId,
  file_key: fileKey,
  size,
  sha256,
  mime_type: mimeType,
})

async function endFailed(tx: TransactionSql, done: DoneCopy[]) {
  const rows = done.flatMap(({ item: { seq, attempts }, outcome }) =>
    outcome?.kind === 'failed' ? [{ seq, attempts }] : [],
  )
  if (rows.length === 0) return []
  const failed = await tx<{ event: Recorded | null }[]>`
    delete from media_copies c
    using json_to_recordset(${JSON.stringify(rows)}::text::json) as u(seq bigint, attempts int)
    where c.seq = u.seq and c.attempts = u.attempts returning c.event
  `
  return failed.flatMap(({ event }) => (event ? [withMedia(event, null, 'failed')] : []))
}

async function postpone(tx: TransactionSql, done: DoneCopy[]) {
  const rows = done.flatMap(({ item: { seq, attempts }, outcome }) => {
    if (outcome && outcome.kind !== 'again') return []
    return [
      { seq, attempts, wait_ms: outcome?.waitMs ?? 0, unbegun: outcome ? 0 : 1, refused: outcome?.refused ? 1 : 0 },
    ]
  })
  if (rows.length === 0) return
  await tx`
    update media_copies c
    set begun_at = null, due_at = now() + u.wait_ms * interval '1 ms', attempts = c.attempts - u.unbegun,
      refusals = c.refusals + u.refused
    from json_to_recordset(${JSON.stringify(rows)}::text::json) as u(seq bigint, attempts int, wait_ms float8, unbegun int,
      refused int)
    where c.seq = u.seq and c.attempts = u.attempts
  `
}
