import { isDatabaseAway } from '../database/database.ts'
import type { Box } from './box.ts'

/** This long after the database is back, every holder has noticed, and recorded what it has done: the longest wait of a loop. */
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

/** What was asked at `askedAt` is answered only now: for that long the database may have been away for others, too. */
export function noteSlow(box: Outage, askedAt: number): void {
  if (performance.now() - askedAt > box.leaseMs / 3) box.awaySince ??= askedAt
}

/**
 * To be called when the database has answered what was asked at `askedAt`: answers whether lanes with lapsed leases may be taken. Not for
 * a moment after the database was away for so long that nobody could renew a lease: then such lanes belong to holders, here and
 * elsewhere, that are alive and have yet to record the outcomes of their work. Taken from them, it would be done again.
 */
export function mayTakeLapsed(box: Outage, askedAt: number): boolean {
  const now = performance.now()
  if (now - (box.awaySince ?? askedAt) > box.leaseMs / 3) box.patientUntil = now + patienceMs
  box.awaySince = null
  return now >= box.patientUntil
}
