import type { Sql } from '@app/shared/database/database.ts'

/**
 * Deletes the lanes of single sends that were let out of their conversation's order (`relaxed`), once these are over, 1,000 at
 * a time; answers how many. Conversations keep their lanes.
 */
export async function sweepLetOutLanes(sql: Sql): Promise<number> {
  const isAsleep = sql`due_at is null and held_until < now()`
  const { count } = await sql`
    delete from send_lanes where id = any(array(
      select id from send_lanes l
      where strpos(id, ':') > 0 and ${isAsleep} and (select true from sends where lane = l.id limit 1) is null
      limit 1000
    )) and ${isAsleep}
  `
  return count
}
