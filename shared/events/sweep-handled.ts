import type { Sql } from '../database/database.ts'

/** One statement looks at so many notes, and makes so many of so many, however many there are, and of whatever size. */
const mostRead = 50_000
const mostMade = 5
const mostMerged = 2_000

/**
 * A note takes the place of many: a sweep. What was handled since a minute is left, since more of it comes. One of ten minutes, not of a
 * day: of a consumer whose events stand apart it has a range for each, and is written anew with each minute.
 */
export async function mergeHandled(sql: Sql): Promise<number> {
  const slot = sql`date_bin('10 minutes', at, 'epoch')`
  const { count } = await sql`
    with seen as materialized (
      select ctid, consumer, source, ${slot} as slot from handled_ranges where at < now() - interval '1 minute' limit ${mostRead}
    ), many as (
      select consumer, source, slot from seen group by 1, 2, 3 having count(*) > 1 limit ${mostMade}
    ), old as (
      delete from handled_ranges where ctid = any(array(
        select seen.ctid from seen join many using (consumer, source, slot) limit ${mostMerged}
      ))
      returning consumer, source, seqs, at
    )
    insert into handled_ranges (consumer, source, seqs, first, last, at)
    select consumer, source, range_agg(r), min(lower(r)), max(upper(r)) - 1, max(at)
    from old, unnest(seqs) r group by consumer, source, ${slot}
  `
  return count
}

/** A sweep: a day after the outbox, whose oldest events are of five days, and may still be asked about. */
export async function forgetHandled(sql: Sql): Promise<number> {
  const { count } = await sql`delete from handled_ranges where at < now() - interval '6 days'`
  return count
}
