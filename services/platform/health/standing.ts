import type { Sql, TransactionSql } from '@app/shared/database/database.ts'
import { type AccountStatus, statusOf } from '../accounts/status.ts'

/** `isReported` of a row of accounts: by the clock that said until when, since those of hosts differ. */
export const reportStands = (sql: Sql | TransactionSql) => sql`coalesce(reported_until > now(), false) as is_reported`

/** What is known of a number beside what the platform answers. */
export interface Standing {
  status: AccountStatus
  /** What was reported stands: no answer lifts it yet. */
  isReported: boolean
  /** The business took it from our app. */
  removed: boolean
}

const worseLast: AccountStatus[] = ['connected', 'onboarding', 'degraded', 'disconnected']

const worse = (one: AccountStatus, other: AccountStatus) =>
  worseLast.indexOf(one) > worseLast.indexOf(other) ? one : other

/** The status of a number of which the platform has answered its own word. */
export function statusAfter({ status, isReported, removed }: Standing, word: string | null) {
  if (removed) return 'disconnected'
  const told = statusOf(word) ?? status
  return isReported ? worse(status, told) : told
}

const minuteMs = 60_000
const usualMs = 10 * minuteMs

/** How long until it is asked for again: a minute while it is degraded or a report stands against it, else ten. */
export const pollAfterMs = ({ status, isReported }: Omit<Standing, 'removed'>) =>
  jittered(status === 'degraded' || isReported ? minuteMs : usualMs)

/** After a question without an answer: 1, 2, 4, 8, then 10 minutes. */
export const pollAgainMs = (failures: number) => jittered(Math.min(usualMs, minuteMs * 2 ** Math.min(failures, 4)))

/** ±10 %, so that numbers that were connected together are not asked for together. */
const jittered = (ms: number) => Math.round(ms * (0.9 + 0.2 * Math.random()))
