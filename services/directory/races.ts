import { Problem } from '@app/shared/api/problem.ts'
import type { TransactionSql } from '@app/shared/database/database.ts'

/** Losing more often than this is not a race. */
const maxAttempts = 8

/** Thrown in a transaction whose attempt has lost a race, so that what it has written is undone. */
export class Overtaken extends Error {
  override readonly name = 'Overtaken'
}

/**
 * Looks and acts until an attempt answers something. One that answers undefined, or throws `Overtaken`, has lost a race: the next finds
 * what the other one made, changed or deleted. Throws `service_unavailable`.
 */
export async function untilWon<T>(attempt: () => Promise<T | undefined>): Promise<T> {
  for (let n = 0; n < maxAttempts; n++) {
    const won = await attempt().catch(ofOvertaken)
    if (won !== undefined) return won
  }
  throw new Problem('service_unavailable')
}

function ofOvertaken(err: unknown): undefined {
  if (!(err instanceof Overtaken)) throw err
}

/**
 * Looks, and once more when nothing was found: what was just being merged or deleted was waited for, and says where it goes on when it is
 * asked again. Its lock is let go before: others take locks in the order of keys, and may wait for it with one that is asked for then.
 */
export async function lookTwice<T>(tx: TransactionSql, look: () => Promise<T>): Promise<T> {
  await tx`savepoint before`
  const found = await look()
  if (found) return found
  await tx`rollback to savepoint before`
  return look()
}
