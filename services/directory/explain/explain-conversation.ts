import type { Handler } from '@app/shared/api/contract.ts'
import { notFound } from '@app/shared/api/problem.ts'
import { type explainConversation as contract, type Moment, momentAt, standing } from '@app/shared/contracts/explain.ts'
import type { Sql } from '@app/shared/database/database.ts'
import type { App } from '../app.ts'
import { windowUntil } from '../conversations/conversations.ts'

export const explainConversation: Handler<App, typeof contract> = async ({ sql }, { body: { id } }) => {
  const conversation = await find(sql, id)
  if (!conversation) throw notFound()
  return { history: [...pastOf(conversation), standingOf(conversation)] }
}

interface Conversation {
  organizationId: string
  phoneNumberId: string
  contactId: string
  contactDeletedAt: Date | null
  status: string
  assignedTo: string | null
  unreadCount: number
  unreadThere: number | null
  lastMessageAt: Date | null
  lastInboundAt: Date | null
  createdAt: Date
  updatedAt: Date
  mergedInto: string | null
  /** Those that ended in this one. */
  ended: string[]
  /** By the organization's choice; null: directory knows no such number. */
  windowCheck: 'strict' | 'upstream' | null
}

async function find(sql: Sql, id: string) {
  const [found] = await sql<Conversation[]>`
    select v.*, c.deleted_at as contact_deleted_at, a.window_check, array(
      select e.id from conversations e
      where e.contact_id = v.contact_id and e.organization_id = v.organization_id and e.merged_into = v.id order by e.id
    ) as ended
    from (select distinct organization_id from accounts) o
    cross join lateral (
      select organization_id, id, phone_number_id, contact_id, status, assigned_to, unread_count, unread_there,
        last_message_at, last_inbound_at, created_at, updated_at, merged_into
      from conversations where organization_id = o.organization_id and id = ${id} limit 1
    ) v
    join contacts c on c.organization_id = v.organization_id and c.id = v.contact_id
    left join accounts a on a.organization_id = v.organization_id and a.phone_number_id = v.phone_number_id
    limit 1
  `
  return found
}

function pastOf(conversation: Conversation): Moment[] {
  const { organizationId, phoneNumberId, contactId, createdAt, lastInboundAt, lastMessageAt } = conversation
  const about = { organization_id: organizationId, phone_number_id: phoneNumberId, contact_id: contactId }
  return [
    momentAt(createdAt, 'was begun', about),
    ...(lastInboundAt ? [momentAt(lastInboundAt, 'the customer wrote last')] : []),
    ...(lastMessageAt ? [momentAt(lastMessageAt, 'its newest message, of either side')] : []),
    ...(conversation.contactDeletedAt ? [momentAt(conversation.contactDeletedAt, 'its contact was deleted')] : []),
  ]
}

function standingOf(conversation: Conversation): Moment {
  const { status, assignedTo, unreadCount, unreadThere, mergedInto, ended, updatedAt } = conversation
  const details = { status, updated_at: updatedAt }
  if (mergedInto !== null) {
    const unread = unreadThere === null ? {} : { unread_when_it_ended: unreadThere }
    return standing(
      `has ended, at ${updatedAt.toISOString()} or before: its contact was merged, and it goes on in ${mergedInto}`,
      { ...details, ...unread },
    )
  }
  const until = windowUntil(conversation.lastInboundAt)
  return standing(`is ${status}; ${windowOf(conversation, until)}`, {
    ...details,
    assigned_to: assignedTo,
    unread_count: unreadCount,
    window_until: until,
    ...(ended.length > 0 && { ended_in_it: ended }),
  })
}

function windowOf({ windowCheck }: Conversation, until: string | null) {
  const isOpen = until !== null && Date.parse(until) > Date.now()
  if (isOpen) return `its window is open until ${until}`
  const since = until === null ? 'its customer has never written' : `its window is closed since ${until}`
  return windowCheck === 'upstream'
    ? `${since}, and the platform decides whether it takes what is no template`
    : `${since}: templates alone are taken (outside_24h_window)`
}
