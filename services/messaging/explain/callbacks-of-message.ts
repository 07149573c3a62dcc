import { type Moment, momentAt } from '@app/shared/contracts/explain.ts'
import type { Sql } from '@app/shared/database/database.ts'

interface Waiting {
  organizationId: string
  kind: 'message' | 'status' | 'change'
  status: string | null
  attempts: number
  receivedAt: Date
  dueAt: Date | null
}

/** Parts of callbacks that bear an id of the platform's and wait, with the organization that they came for. */
export async function callbacksOfMessage(
  sql: Sql,
  upstreamId: string,
  { isKnown }: { isKnown: boolean },
): Promise<{ organizationId: string; moment: Moment }[]> {
  const waiting = await sql<Waiting[]>`
    select s.organization_id, i.kind, i.item -> 'part' ->> 'status' as status, i.attempts, i.received_at, l.due_at
    from (select distinct organization_id from senders) s
    join callback_items i on i.lane = s.organization_id || ':' || ${upstreamId}
    left join callback_lanes l on l.id = i.lane
    order by i.seq
  `
  return waiting.map(({ organizationId, kind, status, attempts, receivedAt, dueAt }) => ({
    organizationId,
    moment: momentAt(
      receivedAt,
      kind === 'status' && !isKnown
        ? `its status ${status} came, and waits: no message is known by this id`
        : `a callback of it (${status ?? kind}) came, and waits: it could not be worked through`,
      { message_id: upstreamId, attempts, next_at: dueAt },
    ),
  }))
}

/** That a message was deleted, by its id of the platform's, as long as that is remembered. */
export async function deletionOf(sql: Sql, upstreamId: string): Promise<{ organizationId: string; moment: Moment }[]> {
  const deleted = await sql<{ organizationId: string; deletedAt: Date }[]>`
    select d.organization_id, d.deleted_at from (select distinct organization_id from senders) s
    join deleted_messages d on d.organization_id = s.organization_id and d.upstream_id = ${upstreamId}
  `
  return deleted.map(({ organizationId, deletedAt }) => ({
    organizationId,
    moment: momentAt(deletedAt, 'was deleted: it was older than its organization keeps messages', {
      message_id: upstreamId,
    }),
  }))
}
