import type { Caller } from '@app/shared/api/contract.ts'
import type { TransactionSql } from '@app/shared/database/database.ts'
import type { AccountState } from './account-states.ts'
import { changeAccount } from './change-account.ts'

/** Gives a number up, so that it sends nothing more and may be connected elsewhere; one that was given up stays as it is. */
export function detachAccount(
  tx: TransactionSql,
  account: { organizationId: string; id: string },
  caller: Caller,
): Promise<AccountState[]> {
  const write = () => tx`
    update accounts set attached = false, status = 'disconnected', updated_at = now()
    where organization_id = ${account.organizationId} and id = ${account.id} and attached
  `
  return changeAccount(tx, account, write, caller)
}
