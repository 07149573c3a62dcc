import type { Contact } from '@app/shared/contracts/contacts.ts'
import type { Sql, TransactionSql } from '@app/shared/database/database.ts'
import type { z } from 'zod'
import type { Origin } from './identity-updated.ts'

/** A contact with what its answer shows of the account: `contactColumns` of contacts c, `accountColumns` of accounts a. */
export interface ContactRow {
  id: string
  phoneNumber: string | null
  bsuid: string | null
  parentBsuid: string | null
  username: string | null
  name: string | null
  email: string | null
  metadata: Record<string, unknown> | null
  createdAt: Date
  /**
   * When it was written, not when the transaction began, which may have waited for another change: events are put in order by it. Never
   * earlier than it was: the clock of who made the contact, or of a database that failed, may have been ahead.
   */
  updatedAt: Date
  phoneNumberId: string
  accountPhoneNumber: string | null
  customerId: string | null
  customerName: string | null
}

export const contactColumns = (sql: Sql | TransactionSql) => sql`
  c.id, c.phone_number, c.bsuid, c.parent_bsuid, c.username, c.name, c.email, c.metadata, c.created_at, c.updated_at
`

export const accountColumns = (sql: Sql | TransactionSql) => sql`
  a.phone_number_id, a.phone_number as account_phone_number, a.customer_id, a.customer_name
`

export const toContact = (row: ContactRow): z.input<typeof Contact> => ({
  id: row.id,
  object: 'contact',
  phone_number: row.phoneNumber,
  bsuid: row.bsuid,
  parent_bsuid: row.parentBsuid,
  username: row.username,
  name: row.name,
  email: row.email,
  metadata: row.metadata,
  chat_account: {
    phone_number: row.accountPhoneNumber,
    phone_number_id: row.phoneNumberId,
    customer: row.customerId === null ? null : { id: row.customerId, name: row.customerName ?? '' },
  },
  created_at: row.createdAt.toISOString(),
  updated_at: row.updatedAt.toISOString(),
})

/** A contact of the number that is there. */
export async function findContact(
  sql: Sql | TransactionSql,
  { organizationId, phoneNumberId }: Pick<Origin, 'organizationId' | 'phoneNumberId'>,
  id: string,
): Promise<ContactRow | undefined> {
  const [row] = await sql<ContactRow[]>`
    select ${contactColumns(sql)}, ${accountColumns(sql)}
    from contacts c
    join accounts a on a.organization_id = c.organization_id and a.phone_number_id = c.phone_number_id
    where c.organization_id = ${organizationId} and c.phone_number_id = ${phoneNumberId} and c.id = ${id}
      and c.deleted_at is null
  `
  return row
}
