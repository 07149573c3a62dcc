import type { DeliveryErrorCode } from '@app/shared/contracts/webhook-deliveries.ts'
import type { Attempt } from './open-attempts.ts'
import type { Answer } from './post.ts'
import { leastWaitMs, retryAfterMs } from './schedule.ts'

/** What is kept of an attempt. */
interface MadeAttempt {
  startedAtMs: number
  durationMs: number
  status: number | null
  snippet: string | null
  error: { code: DeliveryErrorCode; message: string } | null
}

export type Outcome = { attempt: MadeAttempt } & (
  | { kind: 'succeeded' | 'failed' }
  /** 410: never again. */
  | { kind: 'gone' }
  /** Its payload is gone. */
  | { kind: 'expired' }
  /** The whole endpoint waits, and no try of the schedule is used. `ours`: what of ours was away, for the log. */
  | { kind: 'wait'; waitMs: number; ours?: string | undefined }
)

/** For 429 without `Retry-After`. */
const plainWaitMs = 60_000

type Counted = Pick<Attempt, 'number' | 'tries'>

/** Attempts before this one that used no try: nearly all of them were waits. */
const waitsBefore = ({ number, tries }: Counted) => number - 1 - tries

/** 2xx alone is success. */
export function outcomeOf(answer: Answer, counted: Counted, startedAtMs: number, durationMs: number): Outcome {
  const attempt = { startedAtMs, durationMs: Math.round(durationMs), status: answer.status, snippet: null, error: null }
  if (answer.status === null) {
    const { failure, message, isOurs, ours } = answer.failure
    const failed = { ...attempt, error: { code: failure, message } }
    if (!isOurs) return { kind: 'failed', attempt: failed }
    return { kind: 'wait', waitMs: ownWaitMs(counted), ours, attempt: failed }
  }
  const { status, snippet } = answer
  const told: MadeAttempt = { ...attempt, snippet }
  if (status >= 200 && status < 300) return { kind: 'succeeded', attempt: told }
  if (status === 410) {
    return {
      kind: 'gone',
      attempt: { ...told, error: { code: 'gone', message: 'The endpoint is gone for good (410).' } },
    }
  }
  const askedMs = retryAfterMs(answer.retryAfter)
  if (status === 429 || (status === 503 && askedMs !== null)) {
    const waitMs = Math.max(askedMs ?? plainWaitMs, leastWaitMs(waitsBefore(counted)))
    return { kind: 'wait', waitMs, attempt: told }
  }
  if (status >= 300 && status < 400) {
    const error = {
      code: 'redirect_not_followed',
      message: 'Redirects are not followed: subscribe the address that it leads to.',
    } as const
    return { kind: 'failed', attempt: { ...told, error } }
  }
  return { kind: 'failed', attempt: told }
}

/** When something of ours is away, such as a name server, it may be back in a moment: the wait is seconds, and longer each time. */
const ownWaitMs = (counted: Counted) => leastWaitMs(waitsBefore(counted))

/** Something of ours failed before the call. */
export const ourFailure = (counted: Counted, startedAtMs: number): Outcome => ({
  kind: 'wait',
  waitMs: ownWaitMs(counted),
  attempt: {
    startedAtMs,
    durationMs: 0,
    status: null,
    snippet: null,
    error: { code: 'internal_error', message: 'Something went wrong on our side.' },
  },
})

export const payloadGone = (startedAtMs: number): Outcome => ({
  kind: 'expired',
  attempt: {
    startedAtMs,
    durationMs: 0,
    status: null,
    snippet: null,
    error: { code: 'expired', message: 'The payload is no longer kept.' },
  },
})
