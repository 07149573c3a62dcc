import type { Sql, TransactionSql } from '@app/shared/database/database.ts'
import { record, type Recorded } from '@app/shared/events/events.ts'
import { giveUpFiles } from './unclaimed-files.ts'
import { withMedia } from './with-media.ts'

/**
 * Deletes the files of messages that were deleted before in the same transaction: those that no other message names. What
 * `sweepMedia` has not looked at yet (an upload that may still be sent) is left to it.
 */
export async function deleteMediaOf(
  tx: TransactionSql,
  messages: { organizationId: string; mediaId: string | null }[],
): Promise<void> {
  const named = messages.flatMap(({ organizationId, mediaId }) =>
    mediaId === null ? [] : [{ organization_id: organizationId, id: mediaId }],
  )
  if (named.length === 0) return
  await lockCopies(tx, named)
  const deleted = await tx<{ fileKey: string | null; event: Recorded | null }[]>`
    with d as (
      select distinct * from json_to_recordset(${JSON.stringify(named)}::text::json) as d(organization_id text, id text)
    ), gone as (
      delete from media m using d
      where m.organization_id = d.organization_id and m.id = d.id and m.sweep_at is null and not exists (
        select from messages where messages.organization_id = d.organization_id and messages.media_id = d.id
      )
      returning m.organization_id, m.id, m.file_key
    ), uncopied as (
      delete from media_copies c using gone where c.organization_id = gone.organization_id and c.media_id = gone.id
      returning gone.id, c.event
    )
    select file_key, event from gone left join uncopied using (id)
  `
  // The message was to be told with its file, and was not yet.
  await record(
    tx,
    deleted.flatMap(({ event }) => (event ? [withMedia(event, null, 'failed')] : [])),
  )
  await giveUpFiles(
    tx,
    deleted.flatMap(({ fileKey }) => fileKey ?? []),
  )
}

/** Locks copies before their files, and in one order, as whoever ends copies does. */
export const lockCopies = (tx: TransactionSql, named: { organization_id: string; id: string }[]) => tx`
  select from (
    select * from json_to_recordset(${JSON.stringify(named)}::text::json) as d(organization_id text, id text) order by 1, 2
  ) d cross join lateral (
    select from media_copies where organization_id = d.organization_id and media_id = d.id limit 1 for update
  ) c
`

/** Deletes files past their time that no message names: uploads, and files of refused sends. All others go with their messages. */
export const sweepMedia = (sql: Sql): Promise<number> =>
  sql.begin(async (tx) => {
    const swept = await tx<{ organizationId: string; mediaId: string }[]>`
      with due as materialized (
        select organization_id, id from media where sweep_at < now() order by sweep_at limit 1000 for update skip locked
      )
      update media m set sweep_at = null from due where m.organization_id = due.organization_id and m.id = due.id
      returning m.organization_id, m.id as media_id
    `
    await deleteMediaOf(tx, swept)
    return swept.length
  })

/**
 * Forgets uploads that the platform has forgotten, and those whose process died, 5,000 at a time. The deletion repeats the condition, since
 * Postgres checks only its own one again for a row that has changed: an upload that just begins once more stays.
 */
export async function sweepMediaUploads(sql: Sql): Promise<number> {
  const isForgotten = sql`coalesce(expires_at, held_until) < now() - interval '1 day'`
  const { count } = await sql`
    delete from media_uploads where (organization_id, phone_number_id, media_id) in (
      select organization_id, phone_number_id, media_id from media_uploads where ${isForgotten} limit 5000
    ) and ${isForgotten}
  `
  return count
}
