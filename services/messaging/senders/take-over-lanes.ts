import type { Sql, TransactionSql } from '@app/shared/database/database.ts'
import type { Core } from '../app.ts'
import type { OwnNumber } from './own-number.ts'

/** Lanes of one statement: more would take too long for it. */
export const laneBatch = 5_000

/** The pace at which sends are failed that another organization has left at a number; nothing is sent. */
const leftIntervalMs = 12.5

/** The group of what waits for an organization at a number that another one has. */
export const leftGroup = ({ organizationId, phoneNumberId }: OwnNumber): string => `${organizationId}:${phoneNumberId}`

/**
 * When a number comes to an organization: sends that others have queued there can only fail, so they get a group with a pace of its own,
 * and nothing of the new owner waits for them. What the new owner itself had left there earlier goes back to the number's pace. Answers
 * how many lanes have moved; if it is `laneBatch`, there may be more.
 */
export async function takeOverLanes(sql: Sql | TransactionSql, number: OwnNumber): Promise<number> {
  const { organizationId, phoneNumberId } = number
  const { count: back } = await sql`
    update send_lanes set grp = ${phoneNumberId} where id = any(array(
      select id from send_lanes where grp = ${leftGroup(number)} and due_at is not null
      limit ${laneBatch} for update skip locked
    ))
  `
  const { count: left } = await sql`
    with left_over as materialized (
      select l.id, s.organization_id || ':' || l.grp as left_group from send_lanes l
      cross join lateral (select organization_id from sends where lane = l.id limit 1) s
      where l.grp = ${phoneNumberId} and l.due_at is not null and s.organization_id <> ${organizationId}
      limit ${laneBatch} for update of l skip locked
    ), paced as (
      insert into pace (grp, interval_ms) select distinct left_group, ${leftIntervalMs}::float8 from left_over order by 1
      on conflict do nothing
    )
    update send_lanes l set grp = left_group from left_over o where l.id = o.id
  `
  return Math.max(back, left)
}

/** Moves what `takeOverLanes` has left. If this process dies meanwhile, the remaining sends fail at the number's own pace. */
export async function takeOverRest({ sql, log }: Pick<Core, 'sql' | 'log'>, number: OwnNumber, moved: number) {
  try {
    for (let last = moved; last === laneBatch;) last = await takeOverLanes(sql, number)
  } catch (err) {
    log.warn({ err, number: number.phoneNumberId }, 'sends that others queued at a number cannot be set apart')
  }
}
