import type { Handler } from '@app/shared/api/contract.ts'
import { type archiveCustomer as contract, customerArchived } from '@app/shared/contracts/customers.ts'
import type { TransactionSql } from '@app/shared/database/database.ts'
import { tellStates } from '../accounts/tell-states.ts'
import type { App } from '../app.ts'
import { refuseBarred } from '../organizations/bar.ts'
import { changeCustomer } from './change-customer.ts'
import { customerColumns, type CustomerRow, emitCustomer, toCustomer } from './customers.ts'

/**
 * Its active setup links are revoked from then on for whoever reads them (setup-links.ts). Archiving again changes nothing, and
 * tells the numbers again: the first call may have been cut off in between.
 */
export const archiveCustomer: Handler<App, typeof contract> = async (app, { params }, caller) => {
  const { customer, states } = await changeCustomer(app, params.id, caller, async (tx, before) => {
    await refuseBarred(tx, caller.organizationId)
    if (before.status === 'archived') return before
    const after = await archive(tx, before)
    await emitCustomer(tx, customerArchived, after, caller)
    return after
  })
  await tellStates(app, states, caller)
  return toCustomer(customer)
}

async function archive(tx: TransactionSql, { organizationId, id }: CustomerRow) {
  const [row] = await tx<[CustomerRow]>`
    update customers set status = 'archived', archived_at = statement_timestamp(), updated_at = statement_timestamp()
    where organization_id = ${organizationId} and id = ${id}
    returning ${tx(customerColumns)}
  `
  return row
}
