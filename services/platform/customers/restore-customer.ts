import type { Handler } from '@app/shared/api/contract.ts'
import { customerUpdated, type restoreCustomer as contract } from '@app/shared/contracts/customers.ts'
import type { TransactionSql } from '@app/shared/database/database.ts'
import { Problem } from '@app/shared/api/problem.ts'
import { tellStates } from '../accounts/tell-states.ts'
import type { App } from '../app.ts'
import { changeCustomer } from './change-customer.ts'
import { customerColumns, type CustomerRow, emitCustomer, toCustomer } from './customers.ts'

/** One that is not archived stays as it is. */
export const restoreCustomer: Handler<App, typeof contract> = async (app, { body }, caller) => {
  const [found] = await app.sql<Pick<CustomerRow, 'organizationId'>[]>`
    select organization_id from customers where id = ${body.customer_id}
  `
  if (!found) throw new Problem('resource_not_found', { param: 'customer_id' })
  const asOwner = { ...caller, organizationId: found.organizationId }
  const { customer, states } = await changeCustomer(app, body.customer_id, asOwner, async (tx, before) => {
    if (before.status !== 'archived') return before
    const after = await restore(tx, before)
    await emitCustomer(tx, customerUpdated, after, caller)
    return after
  })
  await tellStates(app, states, asOwner)
  return toCustomer(customer)
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
