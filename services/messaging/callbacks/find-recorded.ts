import type { Sql } from '@app/shared/database/database.ts'
import { wasDeleted } from '../messages/deleted-messages.ts'

/**
 * Of these ids of the platform's, those whose messages were recorded, though they may have gone for their age. Nothing is asked of
 * directory for them again: whom it knew then may be deleted by now, and would be made anew.
 */
export async function findRecorded(sql: Sql, organizationId: string, upstreamIds: string[]): Promise<Set<string>> {
  if (upstreamIds.length === 0) return new Set()
  const rows = upstreamIds.map((id) => ({ organization_id: organizationId, upstream_id: id }))
  const recorded = await sql<{ upstreamId: string }[]>`
    select m.upstream_id
    from json_to_recordset(${JSON.stringify(rows)}::text::json) as m(organization_id text, upstream_id text)
    where ${wasDeleted(sql)} or (
      select true from messages where organization_id = m.organization_id and upstream_id = m.upstream_id limit 1
    ) is true
  `
  return new Set(recorded.map(({ upstreamId }) => upstreamId))
}
