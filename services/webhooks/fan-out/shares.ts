import { mostRecent } from '@app/shared/work/most-recent.ts'

/** Deliveries that an organization may make at once, and in a second, while others wait for it: a tenth of a second of work each. */
const atOnce = 4_000
const aSecond = 4_000

/** What organizations have used of the fan-out that is common to all, in this process. */
export interface Shares {
  /** `since` is when they were begun to be made: meanwhile nothing comes back, so that what takes long does not look like little. */
  charge: (organizationId: string, deliveries: number, since?: number) => void
  isUsedUp: (organizationId: string) => boolean
}

/** Leaky buckets, on the clock that is given, in ms. */
export function createShares(now: () => number = () => performance.now()): Shares {
  const levels = mostRecent<string, { deliveries: number; at: number }>(10_000)
  const levelAt = (organizationId: string, time: number) => {
    const { deliveries, at } = levels.get(organizationId) ?? { deliveries: 0, at: 0 }
    return Math.max(0, deliveries - (Math.max(0, time - at) / 1_000) * aSecond)
  }
  return {
    charge(organizationId, deliveries, since = now()) {
      levels.set(organizationId, { deliveries: levelAt(organizationId, since) + deliveries, at: now() })
    },
    isUsedUp: (organizationId) => levelAt(organizationId, now()) >= atOnce,
  }
}
