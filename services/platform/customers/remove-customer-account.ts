import type { Handler } from '@app/shared/api/contract.ts'
import type { removeCustomerAccount as contract } from '@app/shared/contracts/customers.ts'
import type { TransactionSql } from '@app/shared/database/database.ts'
import { notFound } from '@app/shared/api/problem.ts'
import { detachAccount } from '../accounts/detach-account.ts'
import { tellStates } from '../accounts/tell-states.ts'
import type { App } from '../app.ts'
import { refuseBarred } from '../organizations/bar.ts'
import { lockOrganization } from '../organizations/lock-organization.ts'

/** Detaching again changes nothing, and tells the number again: the first call may have been cut off in between. */
export const removeCustomerAccount: Handler<App, typeof contract> = async (app, { params }, caller) => {
  const { organizationId } = caller
  const { id: customerId, phone_number_id: phoneNumberId } = params
  const detach = async (tx: TransactionSql) => {
    await lockOrganization(tx, organizationId)
    await refuseBarred(tx, organizationId)
    const [account] = await tx<{ id: string }[]>`
      select id from accounts where organization_id = ${organizationId} and phone_number_id = ${phoneNumberId}
        and customer_id = ${customerId}
    `
    if (!account) throw notFound()
    return detachAccount(tx, { organizationId, id: account.id }, caller)
  }
  const states = await app.inTurn(caller, () => app.sql.begin(detach))
  app.relay.wake()
  await tellStates(app, states, caller)
  return { customer_id: customerId, phone_number_id: phoneNumberId, removed: true }
}
