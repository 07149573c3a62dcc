import { conversationStatus } from '@app/shared/contracts/conversations.ts'
import type { Sql } from '@app/shared/database/database.ts'
import { each } from '@app/shared/database/each.ts'
import { limitTo } from '@app/shared/database/limit-to.ts'
import { conversationColumns } from './conversations.ts'
import type { Asked } from './newest-conversations.ts'

/** ISO times, both exclusive. */
interface Changed {
  since: string
  until: string
}

/**
 * The moment before which nothing changes any more: the start of the oldest transaction that is open, for what it writes
 * bears that time. Ask before the changes are read: who was open then may have committed since. A transaction that has
 * just begun is not seen for some microseconds, hence a moment earlier.
 */
export async function settledUntil(sql: Sql): Promise<string> {
  const [row] = await sql<{ until: string }[]>`
    select to_json(date_trunc('milliseconds', least(clock_timestamp() - interval '100 ms', min(xact_start)))) #>> '{}' as until
    from pg_stat_activity
    where datname = current_database() and usename = current_user and pid <> pg_backend_pid()
  `
  if (!row) throw new Error('an aggregate without a row')
  return row.until
}

/** The query for a page of conversations v by their last change, newest first. */
export function changedConversations(sql: Sql, asked: Asked, { since, until }: Changed) {
  const { organizationId, phoneNumberId, query, after, rows } = asked
  const { status, contact_id: contactId } = query
  const statuses = status === undefined ? conversationStatus.options : [status]
  const order = sql`v.updated_at desc, v.id desc`
  // Postgres knows fewer offsets from UTC.
  const from = new Date(since).toISOString()
  // Each status is a range of the index, and its newest are the newest of all.
  const conversations = sql`
    select ${conversationColumns(sql)}
    from ${each(sql, statuses)} s(status)
    cross join lateral (
      select ${conversationColumns(sql)} from conversations v
      where v.organization_id = ${organizationId} and v.phone_number_id = ${phoneNumberId} and v.status = s.status
        ${contactId === undefined ? sql`` : sql`and v.contact_id = ${contactId}`}
        and v.updated_at > ${from}::text::timestamptz and v.updated_at < ${until}::text::timestamptz
        ${after === null ? sql`` : sql`and (v.updated_at, v.id) < (${after.time}::text::timestamptz, ${after.id})`}
      order by ${order} ${limitTo(sql, rows)}
    ) v
    order by ${order} ${limitTo(sql, rows)}
  `
  return { conversations, order }
}
