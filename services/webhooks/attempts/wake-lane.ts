import type { TransactionSql } from '@app/shared/database/database.ts'

const dueNow = (tx: TransactionSql) => tx`due_at = now(), paced_until = '-infinity', arrivals = arrivals + 1`

/** The lane is due, whatever it waited for. Wake the mailbox after the commit. */
export const wakeLane = (tx: TransactionSql, subscriptionId: string) => tx`
  update lanes set ${dueNow(tx)} where id = ${subscriptionId}
`

/** The lanes are due, as an arrival makes them: not before what they wait for. */
export const wakeWithin = (tx: TransactionSql, subscriptionIds: string[]) => tx`
  update lanes set due_at = greatest(least(due_at, now()), paced_until), arrivals = arrivals + 1
  where id = any(array(select id from lanes where id = any(${subscriptionIds}) order by id for update))
`

/** As `wakeLane`, also for whoever holds it: he loses it, so that what he learned of the address before does not come back. */
export const retakeLane = (tx: TransactionSql, subscriptionId: string) => tx`
  update lanes set ${dueNow(tx)}, held_until = '-infinity' where id = ${subscriptionId}
`

/**
 * The lane begins anew, without failures. Whoever holds it loses it, so that what he counted does not come back. Wake the
 * mailbox after the commit.
 */
export const renewLane = (tx: TransactionSql, subscriptionId: string) => tx`
  update lanes set ${dueNow(tx)}, failures = 0, held_until = '-infinity' where id = ${subscriptionId}
`

/** The lane sleeps until it is woken. */
export const restLane = (tx: TransactionSql, subscriptionId: string) => tx`
  update lanes set due_at = null where id = ${subscriptionId}
`
