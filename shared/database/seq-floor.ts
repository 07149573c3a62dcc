import { restAfter } from './rest-after.ts'

/** What is committed within this time after later numbers were seen is found by each look: an idle transaction ends after as long. */
const slackMs = 10_000

/** From which number on a queue is looked through. */
export interface SeqFloor {
  /** Of the next look. */
  from: () => number
  /** How soon all is looked through again, in ms. */
  restMs: () => number
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
 * When looks become dear (rest-after.ts), most of them begin where some seconds ago all was settled. What was committed very late below
 * waits for the next look at all, and so does what others have put there again.
 */
export function seqFloor(now: () => number = () => performance.now()): SeqFloor {
  let floor = first
  let next: { seq: number; at: number } | undefined
  let allAt = 0

  return {
    from() {
      if (next && now() >= next.at + slackMs) [floor, next] = [next.seq, undefined]
      return now() < allAt ? floor : first
    },
    restMs: () => Math.max(0, allAt - now()),
    looked(from, tookMs) {
      if (from === first) allAt = now() + restAfter(tookMs)
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
