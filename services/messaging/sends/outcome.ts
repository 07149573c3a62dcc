import { behaviourOf } from '../upstream/errors.ts'
import type { Refused, SendResult } from '../upstream/send.ts'
import { type MessageFailure, reasons } from './message-failed.ts'
import type { OpenSend } from './open-send.ts'

/** What an attempt came to, for its record. */
export interface AttemptRecord {
  outcome: 'sent' | 'refused' | 'unreachable' | 'unknown'
  httpStatus: number | null
  upstreamCode: number | null
  detail: string | null
}

/** What becomes of an open send. */
export type Outcome =
  | { kind: 'sent'; upstreamId: string; waId: string | null; attempt: AttemptRecord }
  /** Again after `waitMs`; `slowNumberMs` holds the whole number back. `letOut`: later sends of its conversation may pass it. */
  | { kind: 'again'; waitMs: number; slowNumberMs: number; letOut: boolean; attempt: AttemptRecord | null }
  /** A callback told already that the platform has it. */
  | { kind: 'known' }
  /** Wait for a callback that may tell. */
  | { kind: 'park'; attempt: AttemptRecord }
  | { kind: 'parked'; waitMs: number }
  /** Its file is at the platform now; or not yet: look again after `waitMs`. No attempt was made. */
  | { kind: 'uploaded'; upstreamMediaId: string }
  | { kind: 'uploading'; waitMs: number }
  | {
      kind: 'failed'
      failure: MessageFailure
      unknown: boolean
      attempt: AttemptRecord | null
      /** The whole number is held back that long. */
      slowNumberMs?: number
    }

/** Waits between the attempts: some 15 minutes in all, ±20 % each. */
const scheduleMs = [5_000, 15_000, 45_000, 120_000, 240_000, 420_000]
const maxAttempts = scheduleMs.length + 1

/** How long an unknown outcome waits for a callback, from the end of the connection or from its discovery. */
export const parkMs = 60_000

const slowNumberMs = 1_000

export function outcomeOf(item: OpenSend, result: SendResult): Outcome {
  const attempt = recordOf(result)
  switch (result.kind) {
    case 'accepted':
      return { kind: 'sent', upstreamId: result.upstreamId, waId: result.waId, attempt }
    case 'unknown':
      return { kind: 'park', attempt }
    case 'unreachable':
      return unreachableOutcome(item, attempt)
    case 'refused':
      return refusedOutcome(item, result, attempt)
  }
}

const unreachable: MessageFailure = {
  code: 'upstream_unavailable',
  message: 'The platform could not be reached.',
  providerCode: null,
}

/** Tried again on the schedule; `failure` is what it comes to when that is over. */
export function unreachableOutcome(item: OpenSend, attempt: AttemptRecord, failure = unreachable): Outcome {
  return againOr(failure, item, attempt, { waitMs: scheduled(item.attempts), attempts: maxAttempts })
}

export function refusedOutcome(item: OpenSend, result: Refused, attempt: AttemptRecord): Outcome {
  const behaviour = behaviourOf(result.code, result)
  const failure = {
    code: behaviour.code,
    message: result.details || result.message,
    providerCode: result.code,
    reportsAccount: behaviour.reportsAccount === true || result.isUnknownNumber,
  }
  const { attempts = maxAttempts, waitMs = scheduled(item.attempts) } = behaviour
  switch (behaviour.action) {
    case 'fail':
      return { kind: 'failed', failure, unknown: false, attempt, slowNumberMs: behaviour.slowNumberMs ?? 0 }
    case 'retry':
      return againOr(failure, item, attempt, { waitMs, attempts })
    case 'number':
      return againOr(failure, item, attempt, {
        waitMs,
        attempts,
        slowNumberMs: slowNumberMs * 2 ** (item.attempts - 1),
      })
    case 'pair':
      // The platform's own advice: 4^X seconds, X = 0, 1, …
      return againOr(failure, item, attempt, { waitMs: 4 ** (item.attempts - 1) * 1_000, attempts })
  }
}

interface Again {
  waitMs: number
  attempts: number
  slowNumberMs?: number
}

function againOr(failure: MessageFailure, item: OpenSend, attempt: AttemptRecord, again: Again): Outcome {
  if (item.attempts >= again.attempts) return { kind: 'failed', failure, unknown: false, attempt }
  return {
    kind: 'again',
    waitMs: again.waitMs,
    slowNumberMs: again.slowNumberMs ?? 0,
    // A send that keeps failing leaves its conversation's order, where the organization chose `relaxed`.
    letOut: item.relaxed && item.attempts >= 2 && !isLetOut(item),
    attempt,
  }
}

/** It has a lane of its own beside that of its conversation. */
const isLetOut = ({ laneId }: OpenSend) => laneId.includes(':')

const scheduled = (attempts: number) => (scheduleMs[attempts - 1] ?? 0) * (0.8 + 0.4 * Math.random())

function recordOf(result: SendResult): AttemptRecord {
  switch (result.kind) {
    case 'accepted':
      return { outcome: 'sent', httpStatus: result.httpStatus, upstreamCode: null, detail: null }
    case 'refused':
      return { outcome: 'refused', httpStatus: result.httpStatus, upstreamCode: result.code, detail: result.details }
    case 'unreachable':
      return { outcome: 'unreachable', httpStatus: null, upstreamCode: null, detail: result.details }
    case 'unknown':
      return { outcome: 'unknown', httpStatus: result.httpStatus, upstreamCode: null, detail: result.details }
  }
}

/** The code with which a send fails, for what stands against its number. */
export const codeOfRefusal = (refusal: string) =>
  refusal === 'chat_number_not_verified' ? 'account_not_connected' : refusal

/** Whether a send of unknown outcome is sent again, when no callback has told. */
export const isSentAgain = ({ resendUnknown, attempts }: Pick<OpenSend, 'resendUnknown' | 'attempts'>) =>
  resendUnknown && attempts < maxAttempts

/** A message that fails for a reason of ours: `provider_code` null, `-1` in the event. */
export function ourFailure(code: string, { unknown = false } = {}): Outcome {
  const failure = { code, message: reasons[code] ?? code, providerCode: null }
  return { kind: 'failed', failure, unknown, attempt: null }
}
