import { Problem } from '@app/shared/api/problem.ts'

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
