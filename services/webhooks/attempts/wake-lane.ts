import type { Fragment, Sql, TransactionSql } from '@app/shared/database/database.ts'
import type { Lane } from '@app/shared/mailbox/lanes.ts'

/**
 * The end of a statement that inserts into `lanes l`: something has come into them. One that is inserted without a `due_at`, since
 * its subscription is paused by hand, sleeps on, unless it was changed since the statement began to read: then it was resumed
 * perhaps, and whoever looked at it found nothing yet.
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
 * Those of the lanes that their holders have lost. Who holds one now, or held it, saw a delivery in a call, and would look again
 * when that call's time is over: wake it. Those that are still held are looked at when they are given back.
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
 * The lane is due, whatever it waited for. Whoever holds it loses it, so that what he learned of the address before does not come
 * back, such as how long it wants to rest. Wake the mailbox after the commit.
 */
export const retakeLane = (tx: TransactionSql, subscriptionId: string) => tx`
  update lanes l set ${takenAndDue(tx)} where id = ${subscriptionId}
`

/**
 * The same of a subscription that is over, so that what waits for it is given up. Its lane is made if there is none yet, so that
 * `arriving` finds it, as below: nobody resumes this one.
 */
export const endLane = (tx: TransactionSql, subscriptionId: string, organizationId: string) => tx`
  insert into lanes as l (id, grp, due_at, arrivals) values (${subscriptionId}, ${organizationId}, now(), 1)
  on conflict (id) do update set ${takenAndDue(tx)}
`

/**
 * The lane begins anew, without failures. Whoever holds it loses it, so that what he counted does not come back. It is made if
 * there is none yet, so that `arriving` finds it: what is just being recorded still believes that its subscription is paused.
 * Wake the mailbox after the commit.
 */
export const renewLane = (tx: TransactionSql, subscriptionId: string) => tx`
  insert into lanes as l (id, grp, due_at, arrivals)
  select id, organization_id, now(), 1 from subscriptions where id = ${subscriptionId}
  on conflict (id) do update set failures = 0, ${takenAndDue(tx)}
`
