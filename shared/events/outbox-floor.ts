/** A look at all that waits costs this at most as long as Postgres can forget what was published: then each look is one. */
const cheapMs = 20
/** After a dearer one this many times as long passes as it took, until the next. */
const restTimes = 10
/** What is committed within this time after later events were published is seen by each look: an idle transaction ends after as long. */
const slackMs = 10_000

/** From which number on the relay looks for what waits. */
export interface OutboxFloor {
  /** Of the next look. */
  from: () => number
  /** A look from there took so long. */
  looked: (from: number, tookMs: number) => void
  /** All that was seen below it is settled, and nothing at it. */
  settledBelow: (seq: number) => void
  /** Something below waits again: the next look is one at all. */
  forget: () => void
}

/** The first number of all. */
export const first = 0

/**
 * While somebody's transaction stays open, Postgres keeps an entry of each event that was published since, and a look from the first number
 * on goes through them all. So when that becomes dear, most looks begin where some seconds ago all was settled. What was committed very late
 * below waits for the next look at all, and so do events that another instance has published again.
 */
export function outboxFloor(now: () => number = () => performance.now()): OutboxFloor {
  let floor = first
  let next: { seq: number; at: number } | undefined
  let allAt = 0

  return {
    from() {
      if (next && now() >= next.at + slackMs) [floor, next] = [next.seq, undefined]
      return now() < allAt ? floor : first
    },
    looked(from, tookMs) {
      if (from === first) allAt = tookMs > cheapMs ? now() + tookMs * restTimes : 0
    },
    settledBelow(seq) {
      floor = Math.min(floor, seq)
      next = { seq: Math.min(next?.seq ?? seq, seq), at: next?.at ?? now() }
    },
    forget() {
      ;[floor, next, allAt] = [first, undefined, 0]
    },
  }
}
