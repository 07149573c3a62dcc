import type { Fragment, Sql, TransactionSql } from '@app/shared/database/database.ts'
import type { Lane } from '@app/shared/mailbox/lanes.ts'

/**
 * The end of a statement that inserts into `lanes l`, for lanes that exist: something has come into them. A lane that is inserted without
 * a `due_at`, since its subscription is paused by hand, sleeps on, unless it has changed since the statement began to read: then the
 * subscription may have been resumed, and whoever looked at the lane found nothing yet.
 */
export const arriving = (sql: Sql | TransactionSql): Fragment => sql`
  on conflict (id) do update set arrivals = l.arrivals + 1, due_at = case
    when excluded.due_at is null and l.arrivals = (select arrivals from lanes where id = l.id) then l.due_at
    else greatest(least(l.due_at, now()), l.paced_until) end
`

/** The lanes are due, as an arrival makes them: not before what they wait for. */
export const wakeWithin = (tx: TransactionSql, subscriptionIds: string[]) => tx`
  update lanes set due_at = greatest(least(due_at, now()), paced_until), arrivals = arrivals + 1
  where id = any(array(select id from lanes where id = any(${subscriptionIds}) order by id for update))
`

/**
 * Those of the lanes that their holders have lost. Whoever has held such a lane since saw a delivery in a call, and would look again only
 * when the time for that call is over: so wake it. Lanes that are still held are looked at when they are given back.
 */
export async function lostOf(tx: TransactionSql, lanes: Lane[]): Promise<string[]> {
  if (lanes.length === 0) return []
  const rows = lanes.map(({ id, heldUntil }) => ({ id, held_until: heldUntil }))
  const lost = await tx<{ id: string }[]>`
    select l.id from json_to_recordset(${JSON.stringify(rows)}::text::json) as h(id text, held_until timestamptz)
    join lanes l on l.id = h.id and l.held_until <> h.held_until
  `
  return lost.map(({ id }) => id)
}

const takenAndDue = (tx: TransactionSql) => tx`
  due_at = now(), paced_until = '-infinity', arrivals = l.arrivals + 1, held_until = '-infinity'
`

/**
 * Makes the lane due, whatever it waited for. Whoever holds it loses it, so that what the holder has learned of the address, such as how
 * long it wants to rest, does not come back. Wake the mailbox after the commit.
 */
export const retakeLane = (tx: TransactionSql, subscriptionId: string) => tx`
  update lanes l set ${takenAndDue(tx)} where id = ${subscriptionId}
`

/**
 * The same for a subscription that has ended, so that what waits for it is given up. The lane is made if there is none yet, so that
 * `arriving` finds it, as in `renewLane`.
 */
export const endLane = (tx: TransactionSql, subscriptionId: string, organizationId: string) => tx`
  insert into lanes as l (id, grp, due_at, arrivals) values (${subscriptionId}, ${organizationId}, now(), 1)
  on conflict (id) do update set ${takenAndDue(tx)}
`

/**
 * The lane begins anew, without failures. Whoever holds it loses it, so that what the holder has counted does not come back. It is made
 * if there is none yet, so that `arriving` finds it: whoever is just recording a delivery still believes that the subscription is
 * paused. Wake the mailbox after the commit.
 */
export const renewLane = (tx: TransactionSql, subscriptionId: string) => tx`
  insert into lanes as l (id, grp, due_at, arrivals)
  select id, organization_id, now(), 1 from subscriptions where id = ${subscriptionId}
  on conflict (id) do update set failures = 0, ${takenAndDue(tx)}
`
