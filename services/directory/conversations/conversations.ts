import type { Conversation } from '@app/shared/contracts/conversations.ts'
import type { Sql, TransactionSql } from '@app/shared/database/database.ts'
import { notFound } from '@app/shared/api/problem.ts'
import type { z } from 'zod'
import type { Origin } from '../contacts/identity-updated.ts'
import { lookTwice } from '../races.ts'

type Shown = z.input<typeof Conversation>

/** A conversation with what its answer shows of others: `conversationColumns` of v, `partyColumns` of c, a and m. */
export interface ConversationRow {
  id: string
  status: Shown['status']
  assignedTo: string | null
  unreadCount: number
  lastMessageAt: Date | null
  lastInboundAt: Date | null
  createdAt: Date
  /** The start of the transaction that changed it last, which delta sync goes by; never earlier than it was. */
  updatedAt: Date
  contactId: string
  contactPhoneNumber: string | null
  contactName: string | null
  accountPhoneNumber: string | null
  assigneeName: string | null
  assigneeEmail: string | null
}

export const conversationColumns = (sql: Sql | TransactionSql) => sql`
  v.id, v.status, v.assigned_to, v.unread_count, v.last_message_at, v.last_inbound_at, v.created_at, v.updated_at,
  v.contact_id
`

/** Of a deleted contact nothing is shown but its id. */
export const partyColumns = (sql: Sql | TransactionSql) => sql`
  case when c.deleted_at is null then c.phone_number end as contact_phone_number,
  case when c.deleted_at is null then c.name end as contact_name,
  a.phone_number as account_phone_number, m.name as assignee_name, m.email as assignee_email
`

export const toConversation = (row: ConversationRow): Shown => ({
  id: row.id,
  object: 'conversation',
  status: row.status,
  contact: { id: row.contactId, phone_number: row.contactPhoneNumber, name: row.contactName },
  chat_account: { phone_number: row.accountPhoneNumber },
  assignee: row.assignedTo === null ? null : { id: row.assignedTo, name: row.assigneeName, email: row.assigneeEmail },
  unread_count: row.unreadCount,
  last_message_at: row.lastMessageAt?.toISOString() ?? null,
  last_inbound_at: row.lastInboundAt?.toISOString() ?? null,
  created_at: row.createdAt.toISOString(),
  updated_at: row.updatedAt.toISOString(),
})

/** A conversation of the number, also one that goes on in another. */
export async function findConversation(
  sql: Sql | TransactionSql,
  { organizationId, phoneNumberId }: Pick<Origin, 'organizationId' | 'phoneNumberId'>,
  id: string,
): Promise<ConversationRow | undefined> {
  const [row] = await sql<ConversationRow[]>`
    select ${conversationColumns(sql)}, ${partyColumns(sql)}
    from conversations v
    cross join lateral (select * from contacts where organization_id = v.organization_id and id = v.contact_id limit 1) c
    join accounts a on a.organization_id = v.organization_id and a.phone_number_id = v.phone_number_id
    left join members m on m.organization_id = v.organization_id and m.id = v.assigned_to
    where v.organization_id = ${organizationId} and v.phone_number_id = ${phoneNumberId} and v.id = ${id}
  `
  return row
}

/** A window is 24 hours from the newest inbound message. */
const windowMs = 24 * 60 * 60 * 1000

/** Until when free-form messages may be sent; null when nobody wrote. */
export const windowUntil = (lastInboundAt: Date | null): string | null =>
  lastInboundAt && new Date(lastInboundAt.getTime() + windowMs).toISOString()

/**
 * Locks the conversation in which one of the number goes on: itself, unless it was merged. What is asked of the one that ended
 * is meant for where it goes on. Conversations are never deleted; throws `resource_not_found` when the number has none.
 */
export async function lockLive(
  tx: TransactionSql,
  { organizationId, phoneNumberId }: Pick<Origin, 'organizationId' | 'phoneNumberId'>,
  id: string,
): Promise<Pick<ConversationRow, 'id' | 'status' | 'assignedTo'>> {
  const live = await lookTwice(tx, async () => {
    const [found] = await tx<Pick<ConversationRow, 'id' | 'status' | 'assignedTo'>[]>`
      select id, status, assigned_to from conversations
      where organization_id = ${organizationId} and phone_number_id = ${phoneNumberId} and merged_into is null and id = (
        select coalesce(merged_into, id) from conversations where organization_id = ${organizationId} and id = ${id}
      )
      for no key update
    `
    return found
  })
  if (!live) throw notFound()
  return live
}
