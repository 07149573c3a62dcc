import type { Caller, Handler, Input } from '@app/shared/api/contract.ts'
import type { disconnectAccount as contract } from '@app/shared/contracts/platform.ts'
import type { TransactionSql } from '@app/shared/database/database.ts'
import { Problem } from '@app/shared/api/problem.ts'
import type { App } from '../app.ts'
import { lockOrganization } from '../organizations/lock-organization.ts'
import { accountColumns, type AccountRow, toAccount } from './accounts.ts'
import { detachAccount } from './detach-account.ts'
import { tellStates } from './tell-states.ts'

type Wanted = Input<typeof contract>['body']

/** Disconnecting again changes nothing, and tells the number again: the first call may have been cut off in between. */
export const disconnectAccount: Handler<App, typeof contract> = async (app, { body }, caller) => {
  const { account, states } = await app.sql.begin((tx) => detach(tx, body, caller))
  app.relay.wake()
  await tellStates(app, states, caller)
  return { ...toAccount(account), account_id: account.id }
}

async function detach(tx: TransactionSql, body: Wanted, caller: Caller) {
  const { organization_id: organizationId, phone_number_id: phoneNumberId } = body
  await lockOrganization(tx, organizationId)
  const find = () => tx<AccountRow[]>`
    select ${tx(accountColumns)} from accounts
    where organization_id = ${organizationId} and phone_number_id = ${phoneNumberId}
  `
  const [found] = await find()
  if (!found) throw new Problem('resource_not_found', { param: 'phone_number_id' })
  const states = await detachAccount(tx, { organizationId, id: found.id }, caller)
  const [account = found] = await find()
  return { account, states }
}
