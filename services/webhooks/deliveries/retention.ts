import type { Sql } from '@app/shared/database/database.ts'
import { firstIdAt } from '@app/shared/values/ids.ts'
import { type Partitions, keptSince } from '@app/shared/database/partitions.ts'

const keepDays = 90
const keepPayloadDays = 30
const dayMs = 24 * 60 * 60 * 1000

/** Events bear their own time, and come late where this service was away: the stream has them for 72 h, the services' outboxes for 4 days. */
const lateDays = 4

/** Of weeks, since a list looks into each partition: 14, not 98 of days. */
const deliveries: Partitions = { table: 'deliveries', by: 'wbd', days: 7, keepDays, lateDays }

export const partitions: Partitions[] = [
  { table: 'events', by: 'time', keepDays: keepPayloadDays, lateDays },
  deliveries,
  { ...deliveries, table: 'attempts' },
]

/** Since when payloads are kept: what is older cannot be replayed. */
export const payloadsSince = (): Date => new Date(Date.now() - keepPayloadDays * dayMs)

/**
 * A sweep: the dead-letter queue forgets what `deliveries` has forgotten, which is whole days. One that forgot sooner would make
 * succeeded ones of those that were given up.
 */
export async function sweepDead(sql: Sql): Promise<number> {
  const before = firstIdAt('wbd', await keptSince(sql, deliveries))
  const { count } = await sql`
    delete from dead_deliveries where id in (select id from dead_deliveries where id < ${before} order by id limit 5000)
  `
  return count
}

/**
 * A sweep: lanes of deleted subscriptions, when nothing waits in them. The deletion repeats its condition, since Postgres checks only its
 * own one again for a row that has changed: a lane into which something has just come stays.
 */
export async function sweepLanes(sql: Sql): Promise<number> {
  const { count } = await sql`
    delete from lanes where id in (
      select id from lanes l where due_at is null and not exists (select from subscriptions s where s.id = l.id)
        and not exists (select from due_deliveries d where d.subscription_id = l.id) limit 1000
    ) and due_at is null
  `
  return count
}

/** A sweep: replays are kept as long as their deliveries, the last of which are made when they end. */
export async function sweepReplays(sql: Sql): Promise<number> {
  const before = new Date(Date.now() - keepDays * dayMs)
  const { count } = await sql`
    delete from replays where id in (
      select id from replays where id < ${firstIdAt('rpl', before)} and finished_at < ${before} order by id limit 1000
    )
  `
  return count
}
