import type { Caller } from '@app/shared/api/contract.ts'
import type { Sql } from '@app/shared/database/database.ts'
import { newId, timeOf } from '@app/shared/values/ids.ts'
import type { FoundConversation } from './look-up.ts'

/**
 * The first conversation of a contact that was made without one. Null when it has one by now, or is gone or merged: look
 * again. The share lock waits for whoever is deleting or merging the contact.
 */
export async function insertConversation(
  sql: Sql,
  { organizationId }: Pick<Caller, 'organizationId'>,
  contactId: string,
): Promise<FoundConversation | null> {
  const id = newId('cnv')
  const made = await sql`
    insert into conversations (organization_id, id, phone_number_id, contact_id, created_at)
    select organization_id, ${id}, phone_number_id, id, ${timeOf(id)} from contacts
    where organization_id = ${organizationId} and id = ${contactId} and deleted_at is null
    for share
    on conflict do nothing
    returning id
  `
  if (made.length === 0) return null
  return { id, status: 'open', assignedTo: null, lastInboundAt: null, isWindowOpen: false }
}
