import type { TransactionSql } from '@app/shared/database/database.ts'
import type { Done } from '@app/shared/mailbox/mailbox.ts'
import type { Attempt } from './open-attempts.ts'
import type { Outcome } from './outcome.ts'

type DoneAttempt = Done<Attempt, Outcome>

/**
 * Excuses failed attempts at a URL that their subscription does not have any more, since it got another one while they were under
 * way. They say nothing about the new URL, so nothing is held against them: their deliveries are due at once.
 *
 * Subscriptions are locked before all else, as whoever changes one does: either the new URL is seen here, or whoever sets it sees what is
 * recorded here, and ends its wait. A success needs no lock, unless it heals its subscription.
 */
export async function excuseElsewhere(tx: TransactionSql, ended: DoneAttempt[]): Promise<DoneAttempt[]> {
  const changing = ended.filter(({ item, outcome }) => outcome?.kind !== 'succeeded' || item.isPaused)
  if (changing.length === 0) return ended
  const rows = await tx<{ id: string; url: string }[]>`
    select id, url from subscriptions where id = any(${[...new Set(changing.map(({ item }) => item.laneId))]})
    order by id for no key update
  `
  const urls = new Map(rows.map(({ id, url }) => [id, url]))
  const elsewhere = new Set(
    changing.filter(({ item: { laneId, url }, outcome }) => isInVain(outcome) && (urls.get(laneId) ?? url) !== url),
  )
  return ended.map((one) => (elsewhere.has(one) ? excused(one) : one))
}

const isInVain = (outcome: Outcome | null) =>
  outcome?.kind === 'failed' || outcome?.kind === 'wait' || outcome?.kind === 'gone'

const excused = (one: DoneAttempt): DoneAttempt =>
  one.outcome ? { ...one, outcome: { kind: 'wait', waitMs: 0, attempt: one.outcome.attempt } } : one
