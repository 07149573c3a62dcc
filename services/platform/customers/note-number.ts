import type { TransactionSql } from '@app/shared/database/database.ts'
import { customerColumns, type CustomerRow } from './customers.ts'

/**
 * A number of the customer, which the caller has locked, was connected. Answers the customer when it is its first one
 * ever: a pending customer is active by it.
 */
export async function noteNumber(tx: TransactionSql, { organizationId, id }: CustomerRow) {
  const [row] = await tx<CustomerRow[]>`
    update customers set first_number_at = now(),
      status = case when status = 'pending' then 'active' else status end,
      updated_at = case when status = 'pending' then statement_timestamp() else updated_at end
    where organization_id = ${organizationId} and id = ${id} and first_number_at is null
    returning ${tx(customerColumns)}
  `
  return row
}
