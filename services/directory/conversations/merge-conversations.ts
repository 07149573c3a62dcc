import type { TransactionSql } from '@app/shared/database/database.ts'
import { record } from '@app/shared/events/events.ts'
import { teamOfAccount } from '../accounts/team-of-account.ts'
import type { Origin } from '../contacts/identity-updated.ts'
import { assignedEvent } from './conversation-assigned.ts'
import { closedEvent } from './conversation-closed.ts'
import type { ConversationRow } from './conversations.ts'

interface Row extends Pick<
  ConversationRow,
  'id' | 'contactId' | 'status' | 'assignedTo' | 'unreadCount' | 'lastMessageAt' | 'lastInboundAt'
> {
  mergedInto: string | null
}

/**
 * Gives a contact the conversations of others that are found to be the same person. It goes on in its own one, or else in
 * the one with the newest message, which takes over the window, the unread messages, the labels, when it has none the assignee,
 * and when it is resolved the status; the rest are resolved and stay readable, and nothing more is written there. Answers the newest inbound
 * message of them all.
 */
export async function mergeConversations(
  tx: TransactionSql,
  origin: Origin,
  survivorId: string,
  goneIds: string[],
): Promise<Date | null> {
  const { organizationId } = origin
  // Also those that have ended before: they show the contact, and what is read in them counts where it goes on.
  const all = await tx<Row[]>`
    select id, contact_id, status, assigned_to, unread_count, last_message_at, last_inbound_at, merged_into
    from conversations
    where organization_id = ${organizationId} and contact_id = any(${[survivorId, ...goneIds]}::text[])
    order by id for no key update
  `
  const open = all.filter(({ mergedInto }) => mergedInto === null).toSorted(byRank(survivorId))
  const [live, ...over] = open
  if (!live) return null
  const ids = all.map(({ id }) => id)
  await tx`
    update conversations v set contact_id = ${survivorId}, merged_into = ${live.id}, status = 'resolved', unread_count = 0,
      unread_there = case when merged_into is null then greatest(0, unread_count - (
        select coalesce(sum(unread_there), 0) from conversations
        where organization_id = ${organizationId} and id = any(${ids}::text[]) and merged_into = v.id
      )) else unread_there end,
      updated_at = greatest(updated_at, now())
    where organization_id = ${organizationId} and id = any(${ids}::text[]) and id <> ${live.id}
  `
  const closed = over.filter((row) => row.status !== 'resolved')
  await record(
    tx,
    closed.map(({ id }) => closedEvent(id, origin)),
  )
  const assignedTo = open.find((row) => row.assignedTo !== null)?.assignedTo ?? null
  // What is unread in one that is not resolved must not hide in one that is.
  const status = open.find((row) => row.status !== 'resolved')?.status ?? live.status
  const lastInboundAt = latest(open.map((row) => row.lastInboundAt))
  const unread = open.reduce((sum, { unreadCount }) => sum + unreadCount, 0)
  await tx`
    update conversations set contact_id = ${survivorId}, status = ${status}, assigned_to = ${assignedTo}, unread_count = ${unread},
      last_inbound_at = ${lastInboundAt}, last_message_at = ${latest(open.map((row) => row.lastMessageAt))},
      own_inbound_at = coalesce(own_inbound_at, last_inbound_at, '-infinity'), updated_at = greatest(updated_at, now())
    where organization_id = ${organizationId} and id = ${live.id}
  `
  const overIds = over.map(({ id }) => id)
  await copyLabels(tx, origin, live.id, overIds)
  if (assignedTo !== live.assignedTo) {
    const teamId = await teamOfAccount(tx, origin)
    await record(tx, [assignedEvent({ ...live, status, assignedTo, previous: live.assignedTo, teamId }, origin)])
  }
  return lastInboundAt
}

/** The one that goes on comes first. */
const byRank = (survivorId: string) => (a: Row, b: Row) =>
  Number(b.contactId === survivorId) - Number(a.contactId === survivorId) ||
  (b.lastMessageAt?.getTime() ?? 0) - (a.lastMessageAt?.getTime() ?? 0)

/** The labels' rows are held: one that is being deleted would be gone when it is attached. */
const copyLabels = (tx: TransactionSql, { organizationId }: Origin, liveId: string, overIds: string[]) => tx`
  insert into conversation_labels (organization_id, conversation_id, label_id)
  select l.organization_id, ${liveId}, l.id
  from (
    select organization_id, id from labels
    where organization_id = ${organizationId} and deleted_at is null and id in (
      select label_id from conversation_labels
      where organization_id = ${organizationId} and conversation_id = any(${overIds}::text[])
    )
    order by id for key share
  ) l
  on conflict do nothing
`

const latest = (times: (Date | null)[]) =>
  times.reduce<Date | null>((newest, time) => (time && (!newest || time > newest) ? time : newest), null)
