import type { Lane } from '@app/shared/mailbox/lanes.ts'
import { roomFor } from '@app/shared/mailbox/rooms.ts'
import { type LaneHealth, mostAtOnce } from './lane-health.ts'
import { createTurnstile, type Turnstile } from './turnstile.ts'

/** An attempt goes out with the address, the secrets and the status that its subscription had so long ago at most. */
export const patienceMs = 250
/** An endpoint that answers so soon is quick. */
const quickMs = 50
const mostAhead = 90

/**
 * How many attempts are begun ahead for a quick endpoint. Then some dozens are recorded, and the next ones picked, together, and the
 * endpoint does not wait for Postgres after every ten. They go out like the others, ten at a time, and there are as many as should be
 * out after half of their patience. With fewer, an endpoint that is behind would never catch up on a busy machine, where a record takes
 * as long as many answers.
 */
const aheadOf = (answersInMs: number) =>
  answersInMs > quickMs ? 0 : Math.min(mostAhead, Math.floor((mostAtOnce * patienceMs) / 2 / answersInMs))

export interface BegunAhead {
  /** As a turnstile's (turnstile.ts). */
  enter: (lane: Lane) => ReturnType<Turnstile['enter']>
  /** Attempts that a lane may have in work at a time, those that wait among them. */
  capacity: (lane: Lane) => number
  /** Runs what begins attempts within the capacities that were told since it ran last. */
  beginning: <T>(begin: () => Promise<T>) => Promise<T>
}

/**
 * At most `mostWaiting` attempts of all lanes wait at a time, so that no other endpoint's attempts have to wait for a slot. Groups share
 * these places as they share slots: however many quick lanes one group has, there is room at once for another group's.
 */
export function createBegunAhead(health: Pick<LaneHealth, 'capacity' | 'answersIn'>, mostWaiting: number): BegunAhead {
  const turnstile = createTurnstile({ atOnce: mostAtOnce, patienceMs })
  /** Places, by group: of those that wait, and those that were told as capacities and are not begun yet. */
  const taken = new Map<string, number>()
  let all = 0
  /** Told since the last turn that begins attempts; that one's are its own until it is over. */
  let promised: [group: string, places: number][] = []

  function take(group: string, places: number) {
    all += places
    const own = (taken.get(group) ?? 0) + places
    if (own === 0) taken.delete(group)
    else taken.set(group, own)
  }

  return {
    async enter(lane) {
      take(lane.group, 1)
      try {
        return await turnstile.enter(lane)
      } finally {
        take(lane.group, -1)
      }
    },
    capacity(lane) {
      const most = health.capacity(lane)
      const free = mostWaiting - all
      const ahead = aheadOf(health.answersIn(lane))
      if (ahead === 0 || free <= 0) return most
      const more = Math.min(ahead, roomFor(free, taken.get(lane.group) ?? 0))
      if (more > 0) promised.push([lane.group, more])
      take(lane.group, more)
      return most + more
    },
    async beginning(begin) {
      const ours = promised
      promised = []
      try {
        return await begin()
      } finally {
        for (const [group, places] of ours) take(group, -places)
      }
    },
  }
}
