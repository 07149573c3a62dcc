import type { Sql, TransactionSql } from '@app/shared/database/database.ts'
import { rememberStops } from './remembered-stops.ts'

/** Assignments that leave of a deleted contact nothing personal. */
export const forgotten = (sql: Sql | TransactionSql) => sql`
  deleted_at = now(), updated_at = now(), phone_number = null, wa_id = null, bsuid = null, parent_bsuid = null,
  username = null, name = null, email = null, metadata = null
`

/**
 * Deletes contacts, which are locked. Their names are free again, and nothing personal is kept but, as hashes, that one
 * wanted no marketing; their conversations stay, and are to be touched (`touchConversations`).
 */
export async function forgetContacts(tx: TransactionSql, organizationId: string, contactIds: string[]): Promise<void> {
  await rememberStops(tx, organizationId, contactIds)
  await tx`
    update contacts set ${forgotten(tx)} where organization_id = ${organizationId} and id = any(${contactIds}::text[])
  `
  await tx`
    delete from identities where organization_id = ${organizationId} and contact_id = any(${contactIds}::text[])
  `
  await tx`
    delete from contact_labels where organization_id = ${organizationId} and contact_id = any(${contactIds}::text[])
  `
}
