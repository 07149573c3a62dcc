import type { Sql } from '@app/shared/database/database.ts'
import { batched } from '@app/shared/work/batched.ts'
import { patienceMs } from './begun-ahead.ts'
import type { Attempt } from './open-attempts.ts'
import { pausedItself } from './paused.ts'
import { signing } from './sign.ts'

/** How long what was read of a subscription is good for an attempt. */
const freshMs = patienceMs + 100
/** The same for what is asked again, counted from the question: longer, since that happens where the database is slow. */
const askedMs = 1_000
/** This long after the commit of a change, nothing goes out any more by what was read before it. */
export const lastByOldMs = Math.max(freshMs, askedMs) + 50

/**
 * Whether an attempt may go out with the address and the secrets that were read when it was begun: because they were read just
 * now, or because they are still the same. Between the reading and the call lie a commit and whatever else its transaction did, which
 * on a busy database takes seconds: meanwhile a secret may have been deleted, and its owner told that it does not sign any more. If
 * that cannot be asked, or is answered late, the attempt goes back unbegun.
 */
export function createAsRead(sql: Sql): (attempt: Attempt) => Promise<boolean> {
  const isStillSo = batched((attempts: Attempt[]) => areStillSo(sql, attempts), { rows: 256 })
  return async (attempt) =>
    performance.now() - attempt.readAt <= freshMs || (await isStillSo(attempt).catch(() => false))
}

async function areStillSo(sql: Sql, attempts: Attempt[]): Promise<boolean[]> {
  const rows = attempts.map(({ laneId, url, secrets }, n) => ({ n, lane: laneId, url, secrets }))
  const askedAt = performance.now()
  const still = await sql<{ n: number }[]>`
    select g.n from json_to_recordset(${JSON.stringify(rows)}::text::json) as g(n int, lane text, url text, secrets text)
    cross join lateral (select url, status, disabled_reason from subscriptions where id = g.lane limit 1) s
    where s.url = g.url and (s.status = 'active' or ${pausedItself(sql)}) and g.secrets = ${signing(sql, sql`g.lane`)}
  `
  // It may have lain here while this process was frozen.
  const isLate = performance.now() - askedAt > askedMs
  const same = new Set(still.map(({ n }) => n))
  return attempts.map((_, n) => same.has(n) && !isLate)
}
