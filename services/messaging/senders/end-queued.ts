import type { Sql, TransactionSql } from '@app/shared/database/database.ts'
import { each } from '@app/shared/database/each.ts'
import type { Core } from '../app.ts'
import type { OwnNumber } from './own-number.ts'
import { laneBatch, leftGroup } from './take-over-lanes.ts'

/** Where the organization's lanes may be. */
export const groupsOf = (number: OwnNumber): string[] => [number.phoneNumberId, leftGroup(number)]

/**
 * Queued sends of a number that is refused end at once: their lanes become due. The first `laneBatch` lanes do so in the transaction of
 * the refusal, `endRest` makes the others due. For 250,000 it took 2.6 s; for more the refusal itself would time out.
 */
export async function endQueued(tx: TransactionSql, number: OwnNumber): Promise<void> {
  await endSome(tx, number, groupsOf(number), 'infinity')
}

/** Ends what `endQueued` has left. If this process dies meanwhile, the remaining sends are refused once they are due by themselves. */
export async function endRest({ sql, log }: Pick<Core, 'sql' | 'log'>, number: OwnNumber): Promise<void> {
  try {
    for (const group of groupsOf(number))
      for (let until: string | null = 'infinity'; until !== null;) until = await endSome(sql, number, [group], until)
  } catch (err) {
    log.warn({ err, number: number.phoneNumberId }, 'sends of a number that is refused wait for their time')
  }
}

/**
 * Makes lanes due that would be later, but not later than `until`: in each group the latest ones first. Answers where a single group
 * goes on, or null at its end. It goes backwards through the times, so that what is parked again meanwhile is not made due again and
 * again. Lanes of another organization, which may have the number by now, stay as they are: each would use up a try before its time.
 */
async function endSome(sql: Sql | TransactionSql, { organizationId }: OwnNumber, groups: string[], until: string) {
  const [last] = await sql<{ until: string }[]>`
    with waiting as materialized (
      select w.id, w.due_at from ${each(sql, groups)} g cross join lateral (
        select id, due_at from send_lanes l
        where grp = g and due_at > now() and due_at <= ${until}::text::timestamptz
          and (select true from sends where lane = l.id and organization_id = ${organizationId} limit 1)
        order by due_at desc limit ${laneBatch}
      ) w
    ), ended as (
      update send_lanes set due_at = now() where due_at > now() and id = any(array(
        select id from send_lanes where id = any(array(select id from waiting)) and due_at > now() order by id for update
      ))
    )
    select min(due_at)::text as until from waiting having count(*) = ${laneBatch}
  `
  return last?.until ?? null
}
