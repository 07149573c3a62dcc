import type { Sql, TransactionSql } from './database.ts'

/**
 * A lane as its holder knows it. The table:
 *
 *   id text primary key, grp text not null, due_at timestamptz, held_until timestamptz not null default '-infinity',
 *   arrivals bigint not null default 0, failures int not null default 0, paced_until timestamptz not null default '-infinity'
 *   with (fillfactor = 80);  index (grp, due_at) where due_at is not null
 *
 * Who adds an item makes its lane due in the same transaction: `due_at = least(due_at, now()), arrivals = arrivals + 1`.
 */
export interface Lane {
  id: string
  group: string
  /** As seen at the claim; another value at the release means that something came in meanwhile. */
  arrivals: string
  /** The lease, as text with all its digits: who holds another value holds the lane no more. */
  heldUntil: string
  failures: number
  /** How far in the future the lane's pace stands, in ms from the claim. */
  pacedMs: number
}

/** How a held lane is given back. */
export interface Release {
  lane: Lane
  /** Due again after that long; null: asleep, unless something came in since the claim. */
  waitMs: number | null
  /** When nothing came in: due again after that long, for an item that has a time of its own. */
  nextMs?: number | null
  failures?: number
  pacedMs?: number
}

/** A group's pace: table (grp text primary key, tat timestamptz not null, interval_ms float8 not null), one token a claimed lane. */
export interface Pace {
  table: string
  /** How far ahead of the pace a group may run. */
  burstMs: number
}

interface Claim {
  table: string
  leaseMs: number
  perGroup: number
  limit: number
  /** Lanes with failures that may be claimed; null: as any other. */
  failingLimit: number | null
  pace: Pace | undefined
  groups: string[]
}

interface Claimed {
  lanes: Lane[]
  /** Whether a group had more due lanes than its pace allows now. */
  paced: boolean
}

const groupsAClaim = 64

/** Groups whose turn it is. */
export interface DueGroups {
  groups: string[]
  /** The group to begin behind next time; empty: at the first. */
  last: string
}

/** Groups with due lanes, in their turn: it begins behind `after`. */
export async function findDueGroups(sql: Sql, table: string, after: string): Promise<DueGroups> {
  const behind = await dueGroups(sql, table, after)
  if (behind.length === groupsAClaim) return { groups: behind, last: behind.at(-1) ?? '' }
  const first = after === '' ? [] : await dueGroups(sql, table, '')
  return { groups: [...new Set([...behind, ...first])], last: '' }
}

/** Claims due lanes, a few of each group. */
export async function claimLanes(tx: TransactionSql, claim: Claim): Promise<Claimed> {
  if (claim.pace) return claimPaced(tx, claim, claim.pace)
  if (claim.failingLimit === null) return { lanes: await claimPlain(tx, claim, claim.limit, tx``), paced: false }
  const healthy = await claimPlain(tx, claim, claim.limit, tx`and failures = 0`)
  const room = Math.min(claim.failingLimit, claim.limit - healthy.length)
  const failing = room > 0 ? await claimPlain(tx, claim, room, tx`and failures > 0`) : []
  return { lanes: [...healthy, ...failing], paced: false }
}

/** Groups with a due lane that nobody holds, by name, found by skipping from group to group in the index. */
async function dueGroups(tx: Sql, table: string, after: string): Promise<string[]> {
  const rows = await tx<{ grp: string }[]>`
    with recursive g as (
      (select grp, due_at from ${tx(table)} where due_at is not null and held_until < now() and grp > ${after}
        order by grp, due_at limit 1)
      union all
      select n.grp, n.due_at from g cross join lateral (
        select grp, due_at from ${tx(table)} where due_at is not null and held_until < now() and grp > g.grp
        order by grp, due_at limit 1
      ) n
    )
    select grp from g where due_at <= now() limit ${groupsAClaim}
  `
  return rows.map(({ grp }) => grp)
}

type Fragment = ReturnType<TransactionSql>

const laneColumns = (tx: TransactionSql) => tx`
  id, grp as "group", arrivals, held_until::text, failures,
  (extract(epoch from greatest(paced_until, now()) - now()) * 1000)::float8 as paced_ms
`

async function claimPlain(tx: TransactionSql, claim: Claim, limit: number, only: Fragment) {
  const { table, leaseMs, perGroup, groups } = claim
  // Materialized: as a subquery it may be run again for each row that is updated, each time skipping those before, and then
  // claims all there are.
  return tx<Lane[]>`
    with due as materialized (
      select d.id as due_id from unnest(${groups}::text[]) g cross join lateral (
        select id from ${tx(table)} where grp = g and due_at <= now() and held_until < now() ${only}
        order by due_at limit ${perGroup} for update skip locked
      ) d limit ${limit}
    )
    update ${tx(table)} as lane set held_until = now() + ${leaseMs} * interval '1 ms'
    from due where lane.id = due.due_id returning ${laneColumns(tx)}
  `
}

async function claimPaced(tx: TransactionSql, claim: Claim, pace: Pace) {
  const { table, leaseMs, perGroup, limit, groups } = claim
  const allowed = await tx<{ grp: string; tokens: number }[]>`
    select grp, floor((${pace.burstMs} - extract(epoch from greatest(tat, now()) - now()) * 1000) / interval_ms)::int as tokens
    from ${tx(pace.table)} where grp = any(${groups}::text[]) order by grp for update skip locked
  `
  const open = allowed.filter(({ tokens }) => tokens > 0)
  const paced = open.length < groups.length
  if (open.length === 0) return { lanes: [], paced }
  const lanes = await tx<Lane[]>`
    with due as materialized (
      select d.id as due_id
      from json_to_recordset(${JSON.stringify(open)}::text::json) as g(grp text, tokens int) cross join lateral (
        select id from ${tx(table)} where grp = g.grp and due_at <= now() and held_until < now()
        order by due_at limit least(g.tokens, ${perGroup}) for update skip locked
      ) d limit ${limit}
    ), claimed as (
      update ${tx(table)} set held_until = now() + ${leaseMs} * interval '1 ms' from due
      where id = due_id returning ${laneColumns(tx)}
    ), charged as (
      update ${tx(pace.table)} as p
      set tat = greatest(p.tat, now()) + c.count * p.interval_ms * interval '1 ms'
      from (select "group", count(*) as count from claimed group by 1) c where p.grp = c."group"
    )
    select * from claimed
  `
  return { lanes, paced }
}

/** Gives lanes back, unless another holder has them by now; answers whether one of them is due at once. */
export async function releaseLanes(tx: TransactionSql, table: string, releases: Release[]): Promise<boolean> {
  if (releases.length === 0) return false
  const rows = releases.map(({ lane, waitMs, nextMs, failures, pacedMs }) => ({
    id: lane.id,
    arrivals: lane.arrivals,
    held_until: lane.heldUntil,
    wait_ms: waitMs,
    next_ms: nextMs ?? null,
    failures: failures ?? null,
    paced_ms: pacedMs ?? null,
  }))
  const released = await tx<{ due: boolean }[]>`
    with given as (
      select * from json_to_recordset(${JSON.stringify(rows)}::text::json)
        as g(id text, arrivals bigint, held_until timestamptz, wait_ms float8, next_ms float8, failures int, paced_ms float8)
    ), mine as (
      select g.id, g.arrivals as seen, g.wait_ms, g.next_ms, g.failures as failed, g.paced_ms
      from (select * from given order by id) g
      -- One look-up each: joined, a table that was small when it was analysed is read whole.
      cross join lateral (
        select id from ${tx(table)} where id = g.id and held_until = g.held_until limit 1 for update
      ) l
    )
    update ${tx(table)} as lane set held_until = '-infinity',
      failures = coalesce(failed, lane.failures),
      paced_until = case when paced_ms is null then lane.paced_until else now() + paced_ms * interval '1 ms' end,
      due_at = case when wait_ms is not null then now() + wait_ms * interval '1 ms' when lane.arrivals <> seen then now()
        when next_ms is not null then now() + next_ms * interval '1 ms' end
    from mine where lane.id = mine.id returning lane.due_at is not null and lane.due_at <= now() as due
  `
  return released.some(({ due }) => due)
}

/** Holds lanes for another lease; answers the new lease of those that were still held. */
export async function renewLanes(
  sql: Sql,
  table: string,
  leaseMs: number,
  lanes: Lane[],
): Promise<Map<string, string>> {
  const rows = lanes.map(({ id, heldUntil }) => ({ id, held_until: heldUntil }))
  const held = await sql<{ id: string; heldUntil: string }[]>`
    with mine as (
      select l.id from ${sql(table)} l
      join json_to_recordset(${JSON.stringify(rows)}::text::json) as g(id text, held_until timestamptz)
        on l.id = g.id and l.held_until = g.held_until
      order by l.id for update of l
    )
    update ${sql(table)} as lane set held_until = now() + ${leaseMs} * interval '1 ms' from mine
    where lane.id = mine.id returning lane.id, lane.held_until::text
  `
  return new Map(held.map(({ id, heldUntil }) => [id, heldUntil]))
}
