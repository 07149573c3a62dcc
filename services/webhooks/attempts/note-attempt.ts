import { timeOf } from '@app/shared/values/ids.ts'
import type { Meters } from '../metrics.ts'
import type { Attempt } from './open-attempts.ts'
import type { Outcome } from './outcome.ts'
import { retryDelayMs } from './schedule.ts'

/** Counts an attempt, and a delivery that it was the last one of. */
export function noteAttempt(meters: Meters, attempt: Attempt, outcome: Outcome): void {
  const { kind, attempt: made } = outcome
  meters.attempts.observe({ outcome: kind }, made.durationMs / 1_000)
  // A delivery's id begins with the time of its event; that of a replay, with the time of the replay.
  if (attempt.number === 1) meters.delay.observe(Math.max(0, Date.now() - timeOf(attempt.id).getTime()) / 1_000)
  if (kind === 'succeeded') return
  meters.failures.inc({ reason: made.error?.code ?? `${Math.floor((made.status ?? 0) / 100)}xx` })
  const reason = endOf(attempt, kind)
  if (reason !== null) meters.dead.inc({ reason })
}

function endOf({ isProbe, tries }: Attempt, kind: Outcome['kind']) {
  if (kind === 'gone' || kind === 'expired') return kind
  return kind === 'failed' && !isProbe && retryDelayMs(tries + 1) === null ? 'exhausted' : null
}
