const second = 1_000
const minute = 60 * second
const hour = 60 * minute

/** From the end of a failed try to the next: 12 tries, 75 h 42 m in all. */
const delaysMs = [
  5 * second,
  30 * second,
  2 * minute,
  10 * minute,
  30 * minute,
  2 * hour,
  5 * hour,
  10 * hour,
  14 * hour,
  20 * hour,
  24 * hour,
]
export const mostTries = delaysMs.length + 1

/** Deliveries that failed together in one outage should not come back together: the first two waits spread most. */
const spreadOf = (tries: number) => (tries <= 2 ? 0.5 : 0.2)

/** How long to wait after so many tries in vain; null: that was the last one. `random` is from 0 to 1. */
export function retryDelayMs(tries: number, random = Math.random()): number | null {
  const delayMs = delaysMs[tries - 1]
  return delayMs === undefined ? null : spread(delayMs, spreadOf(tries), random)
}

export const spread = (ms: number, share: number, random = Math.random()): number => ms * (1 + share * (2 * random - 1))

/** The longest that an endpoint may ask us to wait. */
const longestRetryAfterMs = 24 * hour

/**
 * The least that an endpoint waits when it asks us to: one that says 0 would get the same delivery again at once, for ever.
 * Doubles with each wait that the delivery had before.
 */
export const leastWaitMs = (waits: number, random = Math.random()): number =>
  spread(Math.min(5 * second * 2 ** waits, 5 * minute), 0.2, random)

/** Reads `Retry-After`, seconds or a date; null when there is none that makes sense. */
export function retryAfterMs(header: string | undefined, nowMs = Date.now()): number | null {
  const text = header?.trim() ?? ''
  const isDate = /^[A-Z][a-z]+, .* GMT$/.test(text)
  const ms = /^\d+$/.test(text) ? Number(text) * second : isDate ? Date.parse(text) - nowMs : Number.NaN
  return Number.isNaN(ms) ? null : Math.min(Math.max(ms, 0), longestRetryAfterMs)
}
