import type { TransactionSql } from '@app/shared/database/database.ts'

/**
 * When a number comes back to an organization: what came for it before is worked through, in whichever lane of the organization it was kept.
 * Who looks at a lane just now does not know that the number is back, and looks again. Wake the mailbox after the commit.
 */
export const wakeKept = (tx: TransactionSql, organizationId: string) => tx`
  update callback_lanes set due_at = coalesce(due_at, now()), arrivals = arrivals + 1
  where id = any(array(
    select id from callback_lanes l
    where grp = ${organizationId} and (due_at is null or held_until > now())
      and (select true from callback_items where lane = l.id limit 1)
    order by id for update
  ))
`
