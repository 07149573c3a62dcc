import type { Caller } from '@app/shared/api/contract.ts'
import type { Customer, customerCreated } from '@app/shared/contracts/customers.ts'
import type { Fragment, Sql, TransactionSql } from '@app/shared/database/database.ts'
import { emit } from '@app/shared/events/events.ts'
import type { z } from 'zod'

type Shown = z.input<typeof Customer>

export type CustomerStatus = Shown['status']

export interface CustomerRow {
  id: string
  organizationId: string
  teamId: string
  name: string
  email: string | null
  metadata: Shown['metadata']
  status: CustomerStatus
  firstNumberAt: Date | null
  archivedAt: Date | null
  createdAt: Date
  /** When it was written, not when the transaction began, which may have waited for another change: events are put in order by it. */
  updatedAt: Date
}

export const customerColumns = [
  'id',
  'organization_id',
  'team_id',
  'name',
  'email',
  'metadata',
  'status',
  'first_number_at',
  'archived_at',
  'created_at',
  'updated_at',
]

export const toCustomer = (row: CustomerRow): Shown => ({
  id: row.id,
  object: 'customer',
  name: row.name,
  email: row.email,
  status: row.status,
  metadata: row.metadata,
  archived_at: row.archivedAt?.toISOString() ?? null,
  team_id: row.teamId,
  created_at: row.createdAt.toISOString(),
  updated_at: row.updatedAt.toISOString(),
})

/** Until the commit no other change of the customer or of its setup links comes between, nor any event of them. */
export async function lockCustomer(tx: TransactionSql, organizationId: string, id: string) {
  const [row] = await tx<CustomerRow[]>`
    select ${tx(customerColumns)} from customers where organization_id = ${organizationId} and id = ${id}
    for no key update
  `
  return row
}

/** One of the events that tell the whole customer. Events of a customer are delivered in their order. */
export const emitCustomer = (
  tx: TransactionSql,
  contract: typeof customerCreated,
  row: CustomerRow,
  { traceparent }: Pick<Caller, 'traceparent'>,
) =>
  emit(tx, contract, { customer: toCustomer(row) }, { organizationId: row.organizationId, line: row.id, traceparent })

/**
 * Of the row that a statement joins it to, the customer with this id. Said with the organization, too, every index that begins with that
 * seems as good while Postgres has not heard of it, and all its customers are read for each row. An id is that of one customer over all
 * organizations, and a foreign key says whose.
 */
export const customerOf = (sql: Sql | TransactionSql, id: Fragment) => sql`
  lateral (select id, name, status, team_id, archived_at from customers where id = ${id} limit 1)
`
