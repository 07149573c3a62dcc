import type { Conversation } from '@app/shared/contracts/directory.ts'
import type { Sql } from '@app/shared/database.ts'
import type { z } from 'zod'

type Shown = z.input<typeof Conversation>

/** A conversation with what its answer shows of its contact and account: `conversationColumns` of v, c and a. */
export interface ConversationRow {
  id: string
  status: Shown['status']
  assignedTo: string | null
  unreadCount: number
  lastMessageAt: Date | null
  lastInboundAt: Date | null
  createdAt: Date
  updatedAt: Date
  contactId: string
  contactPhoneNumber: string | null
  contactName: string | null
  accountPhoneNumber: string | null
}

export const conversationColumns = (sql: Sql) => sql`
  v.id, v.status, v.assigned_to, v.unread_count, v.last_message_at, v.last_inbound_at, v.created_at, v.updated_at,
  v.contact_id
`

/** Of a deleted contact nothing is shown but its id. */
export const partyColumns = (sql: Sql) => sql`
  case when c.deleted_at is null then c.phone_number end as contact_phone_number,
  case when c.deleted_at is null then c.name end as contact_name,
  a.phone_number as account_phone_number
`

export const toConversation = (row: ConversationRow): Shown => ({
  id: row.id,
  object: 'conversation',
  status: row.status,
  contact: { id: row.contactId, phone_number: row.contactPhoneNumber, name: row.contactName },
  chat_account: { phone_number: row.accountPhoneNumber },
  // Names belong to platform, which tells nobody of its members: null, as for any user that is not known.
  assignee: row.assignedTo === null ? null : { id: row.assignedTo, name: null, email: null },
  unread_count: row.unreadCount,
  last_message_at: row.lastMessageAt?.toISOString() ?? null,
  last_inbound_at: row.lastInboundAt?.toISOString() ?? null,
  created_at: row.createdAt.toISOString(),
  updated_at: row.updatedAt.toISOString(),
})

/** A window is 24 hours from the newest inbound message. */
const windowMs = 24 * 60 * 60 * 1000

/** Until when free-form messages may be sent; null when nobody wrote. */
export const windowUntil = (lastInboundAt: Date | null): string | null =>
  lastInboundAt && new Date(lastInboundAt.getTime() + windowMs).toISOString()
