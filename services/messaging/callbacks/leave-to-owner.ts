import type { Sql, TransactionSql } from '@app/shared/database/database.ts'
import type { OwnNumber } from '../senders/own-number.ts'

/**
 * When a number comes to an organization: what still waits of its callbacks for the one that had it goes into a lane of that
 * one's own, and waits there for the number to come back. Nobody else may read it.
 */
export const leaveToOwner = (tx: TransactionSql, { organizationId, phoneNumberId }: OwnNumber) => tx`
  with left_over as (
    update callback_items i set lane = l.grp || ':' || l.id from callback_lanes l
    where l.id = ${phoneNumberId} and l.grp <> ${organizationId} and i.lane = ${phoneNumberId} returning i.lane, l.grp
  )
  ${intoItsLane(tx)}
`

/** The same of what was only being kept when its number went: until then it waits in the number's lane, where nobody takes it. */
export const leaveLateToOwner = (sql: Sql) => sql`
  with late as (
    select i.seq, i.lane, (
      select organization_id from senders
      where phone_number_id = i.lane and owned_since <= i.received_at order by owned_since desc limit 1
    ) as grp
    from senders s cross join lateral (
      select seq, lane, received_at from callback_items
      where lane = s.phone_number_id and received_at < s.owned_since limit 1000
    ) i
    where s.attached and s.owned_since > 'epoch'
  ), left_over as (
    update callback_items i set lane = late.grp || ':' || i.lane from late
    where i.seq = late.seq and i.lane = late.lane and late.grp is not null returning i.lane, late.grp
  )
  ${intoItsLane(sql)}
`

const intoItsLane = (sql: Sql | TransactionSql) => sql`
  insert into callback_lanes (id, grp) select distinct lane, grp from left_over
  -- Due, though nothing can be done: a lane that sleeps may just be cleared away by who does not see its items yet.
  on conflict (id) do update set due_at = now()
`
