import type { Handler } from '@app/shared/api/contract.ts'
import { customerUpdated, type restoreCustomer as contract } from '@app/shared/contracts/customers.ts'
import type { Sql, TransactionSql } from '@app/shared/database/database.ts'
import { Problem } from '@app/shared/api/problem.ts'
import { tellStates } from '../accounts/tell-states.ts'
import type { App } from '../app.ts'
import { statusNow } from '../setup-links/setup-links.ts'
import { changeCustomer } from './change-customer.ts'
import { customerColumns, type CustomerRow, emitCustomer, toCustomer } from './customers.ts'

/** One that is not archived stays as it is. Its setup links stay revoked. */
export const restoreCustomer: Handler<App, typeof contract> = async (app, { body }, caller) => {
  const [found] = await app.sql<Pick<CustomerRow, 'organizationId'>[]>`
    select organization_id from customers where id = ${body.customer_id}
  `
  if (!found) throw new Problem('resource_not_found', { param: 'customer_id' })
  const asOwner = { ...caller, organizationId: found.organizationId }
  const archived = { organizationId: found.organizationId, id: body.customer_id }
  await revokeLinks(app.sql, archived)
  const { customer, states } = await changeCustomer(app, body.customer_id, asOwner, async (tx, before) => {
    if (before.status !== 'archived') return before
    // Those that were made between a restoration and an archive meanwhile: mostly none.
    await revokeLinks(tx, before)
    const after = await restore(tx, before)
    await emitCustomer(tx, customerUpdated, after, caller)
    return after
  })
  await tellStates(app, states, asOwner)
  return toCustomer(customer)
}

type ArchivedCustomer = Pick<CustomerRow, 'organizationId' | 'id'>

/** Some 0.1 s of work. */
const linkBatch = 2_000

/** Notes in the links of an archived customer that they were revoked with it. */
async function revokeLinks(sql: Sql | TransactionSql, customer: ArchivedCustomer) {
  for (let last: string | null = ''; last !== null;) last = await revokeSome(sql, customer, last)
}

/** Answers the last that was looked at, null at their end. */
async function revokeSome(sql: Sql | TransactionSql, { organizationId, id }: ArchivedCustomer, after: string) {
  const [some] = await sql<{ last: string }[]>`
    with seen as materialized (
      select l.id, l.status = 'active' and ${statusNow(sql, sql`c.archived_at`)} = 'revoked' as is_revoked
      from customers c join setup_links l on l.organization_id = c.organization_id and l.customer_id = c.id
      where c.organization_id = ${organizationId} and c.id = ${id} and c.status = 'archived' and l.id > ${after}
      order by l.id limit ${linkBatch}
    ), revoked as (
      update setup_links l set status = 'revoked' from seen
      where is_revoked and l.organization_id = ${organizationId} and l.id = seen.id and l.status = 'active'
    )
    select max(id) as last from seen having count(*) = ${linkBatch}
  `
  return some?.last ?? null
}

async function restore(tx: TransactionSql, { organizationId, id }: CustomerRow) {
  const [row] = await tx<[CustomerRow]>`
    update customers set archived_at = null, updated_at = statement_timestamp(),
      status = case when first_number_at is null then 'pending' else 'active' end
    where organization_id = ${organizationId} and id = ${id}
    returning ${tx(customerColumns)}
  `
  return row
}
