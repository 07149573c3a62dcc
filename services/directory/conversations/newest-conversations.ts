import type { listConversations } from '@app/shared/contracts/conversations.ts'
import type { Sql } from '@app/shared/database/database.ts'
import { limitTo } from '@app/shared/database/limit-to.ts'
import type { z } from 'zod'
import { conversationColumns } from './conversations.ts'

/** Which conversations a page is made of. */
export interface Asked {
  organizationId: string
  phoneNumberId: string
  query: z.output<(typeof listConversations)['query']>
  /** Behind which the page begins: a time, empty for none, and the id. */
  after: { time: string; id: string } | null
  rows: number
}

/** The query for a page of conversations v by their newest message, those without one last. */
export function newestConversations(sql: Sql, { organizationId, phoneNumberId, query, after, rows }: Asked) {
  const { status, contact_id: contactId } = query
  // The expression of the indexes: a row comparison with it is one range, where `nulls last` would be two.
  const newest = sql`coalesce(v.last_message_at, '-infinity'::timestamptz)`
  const order = sql`${newest} desc, v.id desc`
  const isAfter =
    after === null ? sql`` : sql`and (${newest}, v.id) < (${after.time || '-infinity'}::text::timestamptz, ${after.id})`
  const conversations = sql`
    select ${conversationColumns(sql)} from conversations v
    where v.organization_id = ${organizationId} and v.phone_number_id = ${phoneNumberId}
      ${status === undefined ? sql`` : sql`and v.status = ${status}`}
      ${contactId === undefined ? sql`` : sql`and v.contact_id = ${contactId}`}
      ${isAfter}
    order by ${order} ${limitTo(sql, rows)}
  `
  return { conversations, order }
}
