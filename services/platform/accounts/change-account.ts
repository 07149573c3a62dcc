import type { Caller } from '@app/shared/api/contract.ts'
import type { TransactionSql } from '@app/shared/database/database.ts'
import { type AccountState, recordChanges, statesOf } from './account-states.ts'

/**
 * Changes an account by `write` and records what others must know of it; answers the states to tell after the commit. The
 * organization's row is locked, so that no two changes mix.
 */
export async function changeAccount(
  tx: TransactionSql,
  { organizationId, id }: { organizationId: string; id: string },
  write: () => Promise<unknown>,
  caller: Caller,
): Promise<AccountState[]> {
  await tx`select id from organizations where id = ${organizationId} for no key update`
  const before = await statesOf(tx, organizationId, id)
  await write()
  return recordChanges(tx, before, await statesOf(tx, organizationId, id), caller)
}
