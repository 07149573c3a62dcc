import type { TransactionSql } from '@app/shared/database/database.ts'

interface Number {
  organizationId: string
  phoneNumberId: string
}

/**
 * When a number comes to an organization: what still waits of its callbacks for the one that had it goes into a lane of that
 * one's own, and waits there for the number to come back. Nobody else may read it.
 */
export const leaveToOwner = (tx: TransactionSql, { organizationId, phoneNumberId }: Number) => tx`
  with left_over as (
    update callback_items i set lane = l.grp || ':' || l.id from callback_lanes l
    where l.id = ${phoneNumberId} and l.grp <> ${organizationId} and i.lane = ${phoneNumberId} returning i.lane, l.grp
  )
  insert into callback_lanes (id, grp) select distinct lane, grp from left_over
  -- Due, though nothing can be done: a lane that sleeps may just be cleared away by who does not see its items yet.
  on conflict (id) do update set due_at = now()
`
