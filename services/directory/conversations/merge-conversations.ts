import type { TransactionSql } from '@app/shared/database.ts'
import type { Origin } from '../contacts/identity-updated.ts'

interface Row {
  id: string
  contactId: string
  unreadCount: number
  lastMessageAt: Date | null
  lastInboundAt: Date | null
}

/**
 * Gives a contact the conversations of others that are found to be the same person. It goes on in its own one, or else in
 * the one with the newest message, which takes over the window and the unread messages; the rest stay readable, and
 * nothing more is written there. Answers the newest inbound message of them all.
 */
export async function mergeConversations(
  tx: TransactionSql,
  { organizationId }: Pick<Origin, 'organizationId'>,
  survivorId: string,
  goneIds: string[],
): Promise<Date | null> {
  const open = await tx<Row[]>`
    select id, contact_id, unread_count, last_message_at, last_inbound_at from conversations
    where organization_id = ${organizationId} and contact_id = any(${[survivorId, ...goneIds]}::text[])
      and merged_into is null
    order by id for no key update
  `
  const [live, ...over] = open.toSorted(
    (a, b) =>
      Number(b.contactId === survivorId) - Number(a.contactId === survivorId) ||
      (b.lastMessageAt?.getTime() ?? 0) - (a.lastMessageAt?.getTime() ?? 0),
  )
  if (!live) return null
  const overIds = over.map(({ id }) => id)
  await tx`
    update conversations set merged_into = ${live.id}, unread_count = 0, updated_at = now()
    where organization_id = ${organizationId} and id = any(${overIds}::text[])
  `
  await tx`
    update conversations set contact_id = ${survivorId}, updated_at = now()
    where organization_id = ${organizationId} and contact_id = any(${goneIds}::text[])
  `
  const lastInboundAt = latest(open.map((row) => row.lastInboundAt))
  const unread = open.reduce((sum, { unreadCount }) => sum + unreadCount, 0)
  await tx`
    update conversations set unread_count = ${unread}, last_inbound_at = ${lastInboundAt},
      last_message_at = ${latest(open.map((row) => row.lastMessageAt))}, updated_at = now()
    where organization_id = ${organizationId} and id = ${live.id}
  `
  return lastInboundAt
}

const latest = (times: (Date | null)[]) =>
  times.reduce<Date | null>((newest, time) => (time && (!newest || time > newest) ? time : newest), null)
