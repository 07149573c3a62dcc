import { Problem } from '@app/shared/api/problem.ts'
import type { TransactionSql } from '@app/shared/database/database.ts'

/** Losing more often than this is not a race. */
const maxAttempts = 8

/** Thrown in a transaction whose attempt has lost a race, so that what it has written is undone. */
export class Overtaken extends Error {
  override readonly name = 'Overtaken'
}

/**
 * Runs attempts until one answers something. An attempt that answers undefined, or throws `Overtaken`, has lost a race: the next one finds
 * what the winner has made, changed or deleted. Throws `service_unavailable` after too many.
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
 * Looks, and once more when nothing was found: what was just being merged or deleted has been waited for, and a second look shows where it
 * goes on. The locks of the first look are given up before: others, who lock in the order of keys, may wait for them while they hold what
 * the second look needs.
 */
export async function lookTwice<T>(tx: TransactionSql, look: () => Promise<T>): Promise<T> {
  await tx`savepoint before`
  const found = await look()
  if (found) return found
  await tx`rollback to savepoint before`
  return look()
}
