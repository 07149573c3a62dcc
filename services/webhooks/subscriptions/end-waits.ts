import type { Sql, TransactionSql } from '@app/shared/database/database.ts'
import { notInCall } from '../attempts/in-call.ts'
import { wakeWithin } from '../attempts/wake-lane.ts'

/** Deliveries that become due in one transaction: 0.1 s. */
const portion = 1_000

/**
 * Ends the waits for a next attempt, since there is another URL: now those of one portion that would end last, the others by `sweepWaits`.
 * It goes backwards through the times, so that what fails at the new URL meanwhile is not made due again and again.
 */
export const endWaits = (tx: TransactionSql, subscriptionId: string): Promise<void> =>
  endSome(tx, { id: subscriptionId, waitsUntil: 'infinity' }, portion)

/** A sweep: a portion of a subscription whose waits were not ended all at once. */
export const sweepWaits = (sql: Sql, most = portion): Promise<number> =>
  sql.begin(async (tx) => {
    const [waiting] = await tx<Waiting[]>`
      select id, waits_until::text from subscriptions where waits_until is not null
      order by id limit 1 for update skip locked
    `
    if (!waiting) return 0
    await wakeWithin(tx, [waiting.id])
    await endSome(tx, waiting, most)
    return 1
  })

interface Waiting {
  id: string
  /** As text with all its digits. */
  waitsUntil: string
}

async function endSome(tx: TransactionSql, { id, waitsUntil }: Waiting, most: number) {
  await tx`
    with waiting as materialized (
      select id, due_at from due_deliveries
      where subscription_id = ${id} and due_at > now() and due_at <= ${waitsUntil}::text::timestamptz and ${notInCall(tx)}
      order by due_at desc limit ${most} for update skip locked
    ), ended as (
      -- Not joined, as in open-attempts.ts.
      update due_deliveries set due_at = now() where id = any(array(select id from waiting))
    )
    update subscriptions set waits_until = (select min(due_at) from waiting having count(*) = ${most}) where id = ${id}
  `
}
