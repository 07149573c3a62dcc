import type { changeIdentity } from '@app/shared/contracts/directory-changes.ts'
import type { Sql, TransactionSql } from '@app/shared/database/database.ts'
import type { z } from 'zod'
import type { ConversationRow } from '../conversations/conversations.ts'
import type { Origin } from './identity-updated.ts'

type Parties = z.input<(typeof changeIdentity)['answer']>

export const nobody: Parties = { conversation: null, contact: null }

interface Row extends Pick<ConversationRow, 'status' | 'assignedTo'> {
  id: string
  phoneNumber: string | null
  name: string | null
  conversationId: string | null
}

/** A contact by its id, or the one that it was merged into, with its conversation; nobody when it is gone. */
export async function contactParties(
  sql: Sql | TransactionSql,
  { organizationId }: Pick<Origin, 'organizationId'>,
  contactId: string,
): Promise<Parties> {
  const [row] = await sql<Row[]>`
    with recursive chain as (
      select id, merged_into, deleted_at, phone_number, name from contacts
      where organization_id = ${organizationId} and id = ${contactId}
      union all
      select c.id, c.merged_into, c.deleted_at, c.phone_number, c.name from chain
      cross join lateral (
        select * from contacts where organization_id = ${organizationId} and id = chain.merged_into limit 1
      ) c
    )
    select c.id, c.phone_number, c.name, v.id as conversation_id, v.status, v.assigned_to
    from chain c
    left join lateral (
      select * from conversations where organization_id = ${organizationId} and contact_id = c.id and merged_into is null limit 1
    ) v on true
    where c.deleted_at is null
  `
  if (!row) return nobody
  return {
    contact: { id: row.id, phone_number: row.phoneNumber, name: row.name },
    conversation: row.conversationId
      ? { id: row.conversationId, status: row.status, assigned_to: row.assignedTo }
      : null,
  }
}
