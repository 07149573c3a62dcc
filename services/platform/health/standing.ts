import { type AccountStatus, statusOf } from '../accounts/status.ts'

/** What is known of a number beside what the platform answers. */
export interface Standing {
  status: AccountStatus
  /** Until then no answer lifts what was reported. */
  reportedUntil: Date | null
  /** The business took it from our app. */
  removed: boolean
}

const worseLast: AccountStatus[] = ['connected', 'onboarding', 'degraded', 'disconnected']

const worse = (one: AccountStatus, other: AccountStatus) =>
  worseLast.indexOf(one) > worseLast.indexOf(other) ? one : other

/** The status of a number of which the platform has answered its own word. */
export function statusAfter({ status, reportedUntil, removed }: Standing, word: string | null, now: Date) {
  if (removed) return 'disconnected'
  const told = statusOf(word) ?? status
  return reportedUntil !== null && reportedUntil > now ? worse(status, told) : told
}

const minuteMs = 60_000
const usualMs = 10 * minuteMs

/** How long until it is asked for again: a minute while it is degraded or a report stands against it, else ten. */
export const pollAfterMs = ({ status, reportedUntil }: Omit<Standing, 'removed'>, now: Date) =>
  jittered(status === 'degraded' || (reportedUntil !== null && reportedUntil > now) ? minuteMs : usualMs)

/** After a question without an answer: 1, 2, 4, 8, then 10 minutes. */
export const pollAgainMs = (failures: number) => jittered(Math.min(usualMs, minuteMs * 2 ** Math.min(failures, 4)))

/** ±10 %, so that numbers that were connected together are not asked for together. */
const jittered = (ms: number) => Math.round(ms * (0.9 + 0.2 * Math.random()))
