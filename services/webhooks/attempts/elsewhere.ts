import type { TransactionSql } from '@app/shared/database/database.ts'
import type { Done } from '@app/shared/mailbox/mailbox.ts'
import type { Attempt } from './open-attempts.ts'
import type { Outcome } from './outcome.ts'

type DoneAttempt = Done<Attempt, Outcome>

/**
 * Finds the attempts in vain at a URL that their subscription has no more, because it got another one while they were under
 * way. They say nothing about that one, so they become ones that nothing is held against: their deliveries are due at once.
 *
 * Subscriptions are locked before all else, as by whoever changes one: either his URL is seen here, or he sees what is recorded, and ends
 * its wait. Only a success leaves them as they are, but for one of a subscription that it heals.
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
