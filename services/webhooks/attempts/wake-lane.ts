import type { TransactionSql } from '@app/shared/database.ts'

/** The lane is due, whatever it waited for. Wake the mailbox after the commit. */
export const wakeLane = (tx: TransactionSql, subscriptionId: string) => tx`
  update lanes set due_at = now(), paced_until = '-infinity', arrivals = arrivals + 1 where id = ${subscriptionId}
`

/**
 * The lane begins anew, without failures. Whoever holds it loses it, so that what he counted does not come back. Wake the
 * mailbox after the commit.
 */
export const renewLane = (tx: TransactionSql, subscriptionId: string) => tx`
  update lanes set due_at = now(), paced_until = '-infinity', arrivals = arrivals + 1, failures = 0,
    held_until = '-infinity'
  where id = ${subscriptionId}
`

/** The lane sleeps until it is woken. */
export const restLane = (tx: TransactionSql, subscriptionId: string) => tx`
  update lanes set due_at = null where id = ${subscriptionId}
`
