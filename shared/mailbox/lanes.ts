import type { Fragment, Sql, TransactionSql } from '../database/database.ts'

/**
 * A lane as its holder knows it. The table:
 *
 *   id text primary key, grp text not null, due_at timestamptz, held_until timestamptz not null default '-infinity',
 *   arrivals bigint not null default 0, failures int not null default 0, paced_until timestamptz not null default '-infinity'
 *   with (fillfactor = 80);  index (grp, due_at) where due_at is not null
 *   index (coalesce(due_at, 'infinity')) where coalesce(due_at, 'infinity') < 'infinity'
 *
 * and what its owner needs beside: `send_lanes` has the `holder` of claims that are made where sends are accepted.
 *
 * Who adds an item makes its lane due in the same transaction: `due_at = least(due_at, now()), arrivals = arrivals + 1`.
 */
export interface Lane {
  id: string
  group: string
  /** As seen at the claim; another value at the release means that something came in meanwhile. */
  arrivals: string
  /** The lease, as text with all its digits: whoever knows another value does not hold the lane any more. */
  heldUntil: string
  failures: number
  /** How far in the future the lane's pace stands, in ms from the claim. */
  pacedMs: number
}

/** How a held lane is given back. */
export interface Release {
  lane: Lane
  /** Due again after this time; null: asleep, unless something came in since the claim. */
  waitMs: number | null
  /** Whether what came in since the claim ends the wait. */
  untilArrival?: boolean
  /** If nothing came in: due again after this time, for an item that has a time of its own. */
  nextMs?: number | null
  failures?: number
  pacedMs?: number
}

/** Failures of a lane that stays held: written at once, so that they are not lost in a crash, and whoever reads the row sees them. */
export interface Noted {
  lane: Lane
  failures: number
}

/** The columns of a Lane, of the table that is called `alias` in the statement. */
export const laneColumns = (sql: Sql | TransactionSql, alias: string): Fragment => sql`
  ${sql(alias)}.id, ${sql(alias)}.grp as "group", ${sql(alias)}.arrivals, ${sql(alias)}.held_until::text, ${sql(alias)}.failures,
  (extract(epoch from greatest(${sql(alias)}.paced_until, now()) - now()) * 1000)::float8 as paced_ms
`

/**
 * Of the lanes `g`, those that are still held as given; locks them. One look-up each: joined, a table that was small when
 * it was analysed is read whole.
 */
const stillHeld = (sql: Sql | TransactionSql, table: string) => sql`
  cross join lateral (select from ${sql(table)} where id = g.id and held_until = g.held_until limit 1 for update) held
`

/**
 * The `lane` of a row in `found`, looked up by its key. With a mere join, Postgres reads all lanes while there are fewer than some
 * thousand: with 4,000, as measured, that was half of the cost of recording what became of a send.
 */
export const isLaneOf = (sql: Sql | TransactionSql, found: string, key = 'id'): Fragment => sql`
  lane.id = ${sql(found)}.${sql(key)} and lane.id = any(array(select ${sql(key)} from ${sql(found)}))
`

/** Locks lanes, whoever holds them, in the order in which all lock them. */
export const lockLanes = (tx: TransactionSql, table: string, lanes: Lane[]) => tx`
  select id from ${tx(table)} where id = any(${lanes.map(({ id }) => id)}) order by id for update
`

/** Gives lanes back, unless another holder has them by now; answers whether one of them is due at once. */
export async function releaseLanes(
  tx: TransactionSql,
  table: string,
  releases: Release[],
  noted: Noted[] = [],
): Promise<boolean> {
  if (releases.length === 0 && noted.length === 0) return false
  const [released] = await tx<{ isDue: boolean }[]>`
    with ${givingBack(tx, table, releases, { noted })} select bool_or(is_due) as is_due from given_back
  `
  return released?.isDue ?? false
}

/** What else a statement knows of the lanes that it gives back. */
interface GivingBack {
  /** A condition that is true once everything is locked that has to be locked before lanes. */
  after?: Fragment
  /** Whether a `lane` into which nothing came is due at once all the same. */
  isDue?: Fragment
  /** Written with the others, so that all are locked in one order. */
  noted?: Noted[]
  /** Whether what a `lane` was to wait for has happened: then its `waitMs` does not count. */
  waitIsOver?: Fragment
}

/** Part of a statement: gives lanes back, unless another holder has them by now, as `given_back`. */
export function givingBack(
  sql: Sql | TransactionSql,
  table: string,
  releases: Release[],
  { after = sql`true`, isDue = sql`false`, waitIsOver = sql`false`, noted = [] }: GivingBack = {},
): Fragment {
  const given = releases.map(({ lane, waitMs, untilArrival, nextMs, failures, pacedMs }) => ({
    id: lane.id,
    seen: lane.arrivals,
    held_until: lane.heldUntil,
    wait_ms: waitMs,
    until_arrival: untilArrival,
    next_ms: nextMs,
    failed: failures,
    paced_ms: pacedMs,
  }))
  const kept = noted.map(({ lane, failures }) => ({
    id: lane.id,
    held_until: lane.heldUntil,
    failed: failures,
    is_kept: true,
  }))
  return sql`
    mine as (
      select g.* from (
        select * from json_to_recordset(${JSON.stringify([...given, ...kept])}::text::json) as g(id text, seen bigint,
          held_until timestamptz, wait_ms float8, until_arrival boolean, next_ms float8, failed int, paced_ms float8,
          is_kept boolean)
        where ${after} order by id
      ) g ${stillHeld(sql, table)}
    ), given_back as (
      update ${sql(table)} as lane set held_until = case when is_kept then lane.held_until else '-infinity' end,
        failures = coalesce(failed, lane.failures),
        paced_until = case when paced_ms is null then lane.paced_until else now() + paced_ms * interval '1 ms' end,
        due_at = case when is_kept then lane.due_at
          when wait_ms is not null and not (until_arrival is true and lane.arrivals <> seen) and not ${waitIsOver}
            then now() + wait_ms * interval '1 ms'
          when lane.arrivals <> seen or ${isDue} then now()
          when next_ms is not null then now() + next_ms * interval '1 ms' end
      from mine where ${isLaneOf(sql, 'mine')}
      returning is_kept is not true and lane.due_at is not null and lane.due_at <= now() as is_due
    )
  `
}

/** Whether any of these lanes is held as given: no transaction but the one that took it has written that lease. */
export async function isAnyHeld(sql: Sql, table: string, lanes: Pick<Lane, 'id' | 'heldUntil'>[]): Promise<boolean> {
  const rows = lanes.map(({ id, heldUntil }) => ({ id, held_until: heldUntil }))
  const held = await sql`
    select from json_to_recordset(${JSON.stringify(rows)}::text::json) as g(id text, held_until timestamptz)
    cross join lateral (select from ${sql(table)} where id = g.id and held_until = g.held_until limit 1) l limit 1
  `
  return held.length > 0
}

/** Holds lanes for another lease; answers the new lease of those that were still held. */
export async function renewLanes(
  sql: TransactionSql,
  table: string,
  leaseMs: number,
  lanes: Lane[],
): Promise<Map<string, string>> {
  const rows = lanes.map(({ id, heldUntil }) => ({ id, held_until: heldUntil }))
  const held = await sql<{ id: string; heldUntil: string }[]>`
    with mine as (
      select g.id from (
        select * from json_to_recordset(${JSON.stringify(rows)}::text::json) as g(id text, held_until timestamptz) order by id
      ) g ${stillHeld(sql, table)}
    )
    update ${sql(table)} as lane set held_until = now() + ${leaseMs} * interval '1 ms' from mine
    where ${isLaneOf(sql, 'mine')} returning lane.id, lane.held_until::text
  `
  return new Map(held.map(({ id, heldUntil }) => [id, heldUntil]))
}
