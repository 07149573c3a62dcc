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
  /** Groups take turns: the claim begins behind this one. */
  afterGroup: string
}

interface Claimed {
  lanes: Lane[]
  /** Whether a group had more due lanes than its pace allows now. */
  paced: boolean
  /** The group to begin behind next time. */
  last: string
}

const groupsAClaim = 64

/** Claims due lanes: a few of each group, in the groups' turn. */
export async function claimLanes(tx: TransactionSql, claim: Claim): Promise<Claimed> {
  const behind = await dueGroups(tx, claim.table, claim.afterGroup)
  const wrapped = behind.length < groupsAClaim && claim.afterGroup !== ''
  const groups = wrapped ? [...new Set([...behind, ...(await dueGroups(tx, claim.table, ''))])] : behind
  if (groups.length === 0) return { lanes: [], paced: false, last: '' }
  const last = behind.length < groupsAClaim ? '' : (behind.at(-1) ?? '')
  if (claim.pace) return { ...(await claimPaced(tx, claim, claim.pace, groups)), last }
  if (claim.failingLimit === null)
    return { lanes: await claimPlain(tx, claim, groups, claim.limit, tx``), paced: false, last }
  const healthy = await claimPlain(tx, claim, groups, claim.limit, tx`and failures = 0`)
  const room = Math.min(claim.failingLimit, claim.limit - healthy.length)
  const failing = room > 0 ? await claimPlain(tx, claim, groups, room, tx`and failures > 0`) : []
  return { lanes: [...healthy, ...failing], paced: false, last }
}

/** Groups with a due lane that nobody holds, by name, found by skipping from group to group in the index. */
async function dueGroups(tx: TransactionSql, table: string, after: string): Promise<string[]> {
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

async function claimPlain(tx: TransactionSql, claim: Claim, groups: string[], limit: number, only: Fragment) {
  const { table, leaseMs, perGroup } = claim
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

async function claimPaced(tx: TransactionSql, claim: Claim, pace: Pace, groups: string[]) {
  const { table, leaseMs, perGroup, limit } = claim
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

/** Gives lanes back, unless another holder has them by now. */
export async function releaseLanes(tx: TransactionSql, table: string, releases: Release[]): Promise<void> {
  if (releases.length === 0) return
  const rows = releases.map(({ lane, waitMs, nextMs, failures, pacedMs }) => ({
    id: lane.id,
    arrivals: lane.arrivals,
    held_until: lane.heldUntil,
    wait_ms: waitMs,
    next_ms: nextMs ?? null,
    failures: failures ?? null,
    paced_ms: pacedMs ?? null,
  }))
  await tx`
    with given as (
      select * from json_to_recordset(${JSON.stringify(rows)}::text::json)
        as g(id text, arrivals bigint, held_until timestamptz, wait_ms float8, next_ms float8, failures int, paced_ms float8)
    ), mine as (
      select l.id, g.arrivals as seen, g.wait_ms, g.next_ms, g.failures as failed, g.paced_ms
      from ${tx(table)} l join given g on l.id = g.id and l.held_until = g.held_until
      order by l.id for update of l
    )
    update ${tx(table)} as lane set held_until = '-infinity',
      failures = coalesce(failed, lane.failures),
      paced_until = case when paced_ms is null then lane.paced_until else now() + paced_ms * interval '1 ms' end,
      due_at = case when wait_ms is not null then now() + wait_ms * interval '1 ms' when lane.arrivals <> seen then now()
        when next_ms is not null then now() + next_ms * interval '1 ms' end
    from mine where lane.id = mine.id
  `
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
