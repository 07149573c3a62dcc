const minuteMs = 60_000
/** Float sums of intervals miss a whole number of tokens by less than this. */
const toleranceMs = 0.001

/** What one key (or address) may still spend, as this process knows it. All moments are of performance.now. */
export interface Budget {
  name: string
  perMinute: number
  /** What one token costs in time. */
  intervalMs: number
  /** When it were whole again if this process were the only one: decides alone while Redis is away. */
  wholeAt: number
  /** Tokens leased from Redis and not spent yet. */
  inHand: number
  /** When the shared budget is whole again. */
  sharedWholeAt: number
  /** Redis has none until then. */
  emptyUntil: number
}

export const newBudget = (name: string, perMinute: number): Budget => ({
  name,
  perMinute,
  intervalMs: minuteMs / perMinute,
  wholeAt: 0,
  inHand: 0,
  sharedWholeAt: 0,
  emptyUntil: 0,
})

/** A tier may change under a budget; what was spent stays spent. */
export function setRate(budget: Budget, perMinute: number): void {
  budget.perMinute = perMinute
  budget.intervalMs = minuteMs / perMinute
}

/** Whether this process by itself stays within the budget: one minute's worth at once, then at its pace. */
export const hasOwn = ({ wholeAt, intervalMs }: Budget, now: number): boolean =>
  Math.max(wholeAt, now) + intervalMs <= now + minuteMs + toleranceMs

/**
 * Leased tokens that may be spent. They lapse as the shared budget fills up again: else a burst could spend a whole
 * budget and the tokens in hand on top. Nothing is lost by that, it is there in Redis.
 */
export const usable = ({ inHand, sharedWholeAt, intervalMs }: Budget, now: number): number =>
  Math.max(0, Math.min(inHand, Math.ceil((sharedWholeAt - now) / intervalMs)))

export function spend(budget: Budget, now: number): void {
  budget.inHand = Math.max(0, usable(budget, now) - 1)
  budget.wholeAt = Math.max(budget.wholeAt, now) + budget.intervalMs
}

/** Notes what Redis charged at `sentAt` or a little later, and what it said of the whole. It is asked when none is in hand. */
export function addLease(budget: Budget, tokens: number, wholeInMs: number, sentAt: number): void {
  budget.inHand = tokens
  budget.sharedWholeAt = sentAt + wholeInMs
  if (tokens === 0) budget.emptyUntil = budget.sharedWholeAt + budget.intervalMs - minuteMs
}

/** How a budget stands. */
export interface Standing {
  remaining: number
  /** Until it is whole again. */
  wholeInSeconds: number
  /** Until there is a token, at least 1. */
  tokenInSeconds: number
}

export function standingOf(budget: Budget): Standing {
  const now = performance.now()
  const { intervalMs, perMinute, wholeAt, sharedWholeAt, emptyUntil } = budget
  const sharedAt = sharedWholeAt - usable(budget, now) * intervalMs
  const emptyAt = emptyUntil > now ? emptyUntil + minuteMs - intervalMs : 0
  const owedMs = Math.max(wholeAt, sharedAt, emptyAt, now) - now
  return {
    remaining: Math.max(0, Math.floor(perMinute - owedMs / intervalMs + toleranceMs)),
    wholeInSeconds: Math.ceil(owedMs / 1000),
    tokenInSeconds: Math.max(1, Math.ceil((owedMs + intervalMs - minuteMs) / 1000)),
  }
}
