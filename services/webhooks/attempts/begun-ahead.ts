import type { Lane } from '@app/shared/mailbox/lanes.ts'
import { type LaneHealth, mostAtOnce } from './lane-health.ts'
import { createTurnstile, type Turnstile } from './turnstile.ts'

/**
 * Attempts that are begun ahead for a quick endpoint: what ends is recorded, and what follows picked, some dozens together, so
 * that the endpoint need not wait for Postgres after every ten. They go out as the others, ten at a time.
 */
const begunAhead = 30
/** An attempt goes out with the address, the secrets and the status that its subscription had so long ago at most. */
export const patienceMs = 250

export interface BegunAhead extends Pick<Turnstile, 'enter'> {
  /** Attempts that a lane may have in work at a time, those that wait among them. */
  capacity: (lane: Lane) => number
  /** Runs what begins attempts within the capacities that were told since it ran last. */
  beginning: <T>(begin: () => Promise<T>) => Promise<T>
}

/** About `mostWaiting` of all lanes wait at a time, so that no other endpoint's attempts have to wait for a slot. */
export function createBegunAhead(health: Pick<LaneHealth, 'capacity' | 'isQuick'>, mostWaiting: number): BegunAhead {
  const turnstile = createTurnstile({ atOnce: mostAtOnce, patienceMs })
  /** Told as capacities, and not begun yet: of this turn, and of others that are at it. */
  let [promised, beginning] = [0, 0]
  return {
    enter: turnstile.enter,
    capacity(lane) {
      const most = health.capacity(lane)
      if (!health.isQuick(lane) || turnstile.waiting() + promised + beginning >= mostWaiting) return most
      promised += begunAhead
      return most + begunAhead
    },
    async beginning(begin) {
      const ours = promised
      promised = 0
      beginning += ours
      try {
        return await begin()
      } finally {
        beginning -= ours
      }
    },
  }
}
