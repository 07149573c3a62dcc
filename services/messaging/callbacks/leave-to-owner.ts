import type { Sql, TransactionSql } from '@app/shared/database/database.ts'
import type { OwnNumber } from '../senders/own-number.ts'

/**
 * When a number comes to an organization: parts of callbacks that still wait for its previous owner go into a lane of that
 * organization's own, and wait there for the number to come back. Nobody else may read them.
 */
export const leaveToOwner = (tx: TransactionSql, { organizationId, phoneNumberId }: OwnNumber) => tx`
  with left_over as (
    update callback_items i set lane = l.grp || ':' || l.id from callback_lanes l
    where l.id = ${phoneNumberId} and l.grp <> ${organizationId} and i.lane = ${phoneNumberId} returning i.lane, l.grp
  )
  ${intoItsLane(tx)}
`

/** The same for parts that were just being stored when the number moved: they are in the number's lane, where nobody takes them. */
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
  -- Due, though nothing can be done yet: a sleeping lane may just be deleted by somebody who does not see its new items.
  on conflict (id) do update set due_at = now()
`
