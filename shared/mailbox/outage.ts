import { isDatabaseAway } from '../database/database.ts'
import type { Box } from './box.ts'

/** Once the database is back, every holder has heard of it, and recorded what it has done, after the longest wait of a loop. */
const patienceMs = 5_000

type Outage = Pick<Box<never, never>, 'awaySince' | 'patientUntil' | 'leaseMs'>

/** Notes since when the database is away. */
export async function noteOutage<T>(box: Outage, turn: () => Promise<T>): Promise<T> {
  const startedAt = performance.now()
  try {
    return await turn()
  } catch (err) {
    if (isDatabaseAway(err)) box.awaySince ??= startedAt
    throw err
  }
}

/** What was asked at `askedAt` is answered just now: so long the database may have been away from others, too. */
export function noteSlow(box: Outage, askedAt: number): void {
  if (performance.now() - askedAt > box.leaseMs / 3) box.awaySince ??= askedAt
}

/**
 * The database has answered what was asked at `askedAt`. Answers whether lanes may be taken whose leases have lapsed: not for a
 * moment after it was away for so long that nobody could renew his. Then they are those of holders that live, here and elsewhere,
 * and have what came of their work still to record; taken from them, it would be done again.
 */
export function mayTakeLapsed(box: Outage, askedAt: number): boolean {
  const now = performance.now()
  if (now - (box.awaySince ?? askedAt) > box.leaseMs / 3) box.patientUntil = now + patienceMs
  box.awaySince = null
  return now >= box.patientUntil
}
