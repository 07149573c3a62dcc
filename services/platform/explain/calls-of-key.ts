import { type Moment, momentAt, standing } from '@app/shared/contracts/explain.ts'
import { isCancelled, type Sql } from '@app/shared/database/database.ts'
import { countCallsSince, lastCallSince, type LoggedCall } from '../api-log/find-calls.ts'

const minuteMs = 60_000
/** The log has no index of keys, and is read from its end: further and further back, until something is found. */
const lookBacksMs = [minuteMs, 60 * minuteMs, 24 * 60 * minuteMs, 30 * 24 * 60 * minuteMs]

/** The last call that was made with a key. Where the log is so large that Postgres gives up (3 s), it says how far it looked. */
export async function lastCallOf(sql: Sql, { id, createdAt }: { id: string; createdAt: Date }): Promise<Moment> {
  let seenSince: Date | null = null
  for (const backMs of lookBacksMs) {
    const since = new Date(Date.now() - backMs)
    const call = await lastSince(sql, id, since)
    if (call === 'too many') return standing(notSeen(seenSince))
    if (call) {
      const { at, requestId, method, path, status } = call
      return momentAt(at, `was used last: ${method} ${path}: ${status}`, { request_id: requestId })
    }
    seenSince = since
    if (since < createdAt) break
  }
  return standing('was not used yet, or not in the last 30 days, which is how far the log goes back')
}

const notSeen = (since: Date | null) =>
  since === null
    ? 'whether it is used is not known: the log is too large to be looked through'
    : `was not used since ${since.toISOString()}; the log before that is too large to be looked through`

async function lastSince(sql: Sql, id: string, since: Date): Promise<LoggedCall | undefined | 'too many'> {
  try {
    return await lastCallSince(sql, id, since)
  } catch (err) {
    if (isCancelled(err)) return 'too many'
    throw err
  }
}

const recentMs = 15 * minuteMs

interface Recent {
  calls: number
  rate_limited: number
}

/** How many calls were made with it of late, and how many of them were too many; null: the log is too large. */
export async function recentCallsOf(sql: Sql, id: string): Promise<Recent | null> {
  const since = new Date(Date.now() - recentMs)
  try {
    const { calls, rateLimited } = await countCallsSince(sql, id, since)
    return { calls, rate_limited: rateLimited }
  } catch (err) {
    if (isCancelled(err)) return null
    throw err
  }
}
