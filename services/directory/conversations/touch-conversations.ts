import type { TransactionSql } from '@app/shared/database/database.ts'

/**
 * What conversations show of their contacts changed, so they did. Their contacts are locked before them, and they in the
 * order of their keys, as everywhere: once in a transaction, with all contacts.
 */
export async function touchConversations(
  tx: TransactionSql,
  organizationId: string,
  contactIds: string[],
): Promise<void> {
  await tx`
    with locked as (
      select id from conversations
      where organization_id = ${organizationId} and contact_id = any(${contactIds}::text[])
      order by id for no key update
    )
    update conversations v set updated_at = greatest(v.updated_at, now()) from locked
    where v.organization_id = ${organizationId} and v.id = locked.id
  `
}

/** To be called before somebody looks at conversations that will be touched: what was just being written to them is there afterwards. */
export const lockConversations = (tx: TransactionSql, organizationId: string, contactIds: string[]) => tx`
  select id from conversations
  where organization_id = ${organizationId} and contact_id = any(${contactIds}::text[])
  order by id for no key update
`
