import type { Fragment, Sql, TransactionSql } from '../database/database.ts'
import { type Lane, laneColumns } from './lanes.ts'
import { charging, type Pace, tokensOf } from './pace.ts'

interface Claim {
  table: string
  leaseMs: number
  perGroup: number
  limit: number
  /** Lanes with failures that may be claimed; null: as any other. */
  failingLimit: number | null
  pace: Pace | undefined
  groups: string[]
  /** Lanes whose holders have not given them back in the time of their leases, too. */
  lapsedToo: boolean
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

const isFree = (tx: TransactionSql, { lapsedToo }: Claim) =>
  lapsedToo ? tx`held_until < now()` : tx`held_until = '-infinity'`

async function claimPlain(tx: TransactionSql, claim: Claim, limit: number, only: Fragment) {
  const { table, leaseMs, perGroup, groups } = claim
  // Materialized: as a subquery it may be run again for each row that is updated, each time skipping those before, and then
  // claims all there are.
  return tx<Lane[]>`
    with due as materialized (
      select d.id as due_id from unnest(${groups}::text[]) g cross join lateral (
        select id from ${tx(table)} where grp = g and due_at <= now() and ${isFree(tx, claim)} ${only}
        order by due_at limit ${perGroup} for update skip locked
      ) d limit ${limit}
    )
    update ${tx(table)} as lane set held_until = now() + ${leaseMs} * interval '1 ms'
    from due where lane.id = due.due_id returning ${laneColumns(tx, 'lane')}
  `
}

async function claimPaced(tx: TransactionSql, claim: Claim, pace: Pace) {
  const { table, leaseMs, perGroup, limit, groups } = claim
  const allowed = await tx<{ grp: string; tokens: number }[]>`
    select grp, ${tokensOf(tx, pace.burstMs)} as tokens
    from ${tx(pace.table)} where grp = any(${groups}::text[]) order by grp for update skip locked
  `
  const open = allowed.filter(({ tokens }) => tokens > 0)
  const paced = open.length < groups.length
  if (open.length === 0) return { lanes: [], paced }
  const lanes = await tx<Lane[]>`
    with due as materialized (
      select d.id as due_id
      from json_to_recordset(${JSON.stringify(open)}::text::json) as g(grp text, tokens int) cross join lateral (
        select id from ${tx(table)} where grp = g.grp and due_at <= now() and ${isFree(tx, claim)}
        order by due_at limit least(g.tokens, ${perGroup}) for update skip locked
      ) d limit ${limit}
    ), claimed as (
      update ${tx(table)} as lane set held_until = now() + ${leaseMs} * interval '1 ms'
      from due where lane.id = due.due_id returning ${laneColumns(tx, 'lane')}
    ), charged as (
      ${charging(tx, pace.table, tx`select "group" as grp, count(*) from claimed group by 1`)}
    )
    select * from claimed
  `
  return { lanes, paced }
}
