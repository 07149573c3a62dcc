import type { Caller } from '@app/shared/api/contract.ts'
import type { TransactionSql } from '@app/shared/database/database.ts'
import { notFound } from '@app/shared/api/problem.ts'
import { type AccountState, recordChanges, statesOfCustomer } from '../accounts/account-states.ts'
import type { App } from '../app.ts'
import { lockOrganization } from '../organizations/lock-organization.ts'
import { type CustomerRow, lockCustomer } from './customers.ts'

interface Changed {
  customer: CustomerRow
  /** Of all its numbers, changed or not. */
  states: AccountState[]
}

/**
 * Changes a customer under its lock; its numbers follow, with the events that tell it. `change` answers the row as it is
 * then. What other services must know before our own caller does, is the caller's to tell (`tellStates`).
 */
export async function changeCustomer(
  app: App,
  id: string,
  caller: Caller,
  change: (tx: TransactionSql, before: CustomerRow) => Promise<CustomerRow>,
): Promise<Changed> {
  const { organizationId } = caller
  const run = async (tx: TransactionSql) => {
    await lockOrganization(tx, organizationId)
    const before = await lockCustomer(tx, organizationId, id)
    if (!before) throw notFound()
    const statesBefore = await statesOfCustomer(tx, organizationId, id)
    const customer = await change(tx, before)
    const states = await recordChanges(tx, statesBefore, await statesOfCustomer(tx, organizationId, id), caller)
    return { customer, states }
  }
  const changed = await app.inTurn(caller, () => app.sql.begin(run))
  app.relay.wake()
  return changed
}
