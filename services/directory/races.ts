import { Problem } from '@app/shared/api/problem.ts'

/** Losing more often than this is not a race. */
const maxAttempts = 8

/**
 * Looks and acts until an attempt answers something. One that answers undefined has lost a race: the next finds what the other one
 * made, changed or deleted. Throws `service_unavailable`.
 */
export async function untilWon<T>(attempt: () => Promise<T | undefined>): Promise<T> {
  for (let n = 0; n < maxAttempts; n++) {
    const won = await attempt()
    if (won !== undefined) return won
  }
  throw new Problem('service_unavailable')
}
