import type { TransactionSql } from '@app/shared/database.ts'

/**
 * What conversations show of their contact changed, so they did. Their contact is locked before them, and they in the
 * order of their keys, as everywhere.
 */
export async function touchConversations(tx: TransactionSql, organizationId: string, contactId: string): Promise<void> {
  await tx`
    with locked as (
      select id from conversations where organization_id = ${organizationId} and contact_id = ${contactId}
      order by id for no key update
    )
    update conversations v set updated_at = now() from locked
    where v.organization_id = ${organizationId} and v.id = locked.id
  `
}
