import type { Fragment, Sql, TransactionSql } from '../database/database.ts'
import { floorOf, timeOfFloor } from './due-floor.ts'
import { isLaneOf, type Lane, laneColumns } from './lanes.ts'
import { charging, type Pace, tokensOf } from './pace.ts'
import { partOf } from './rooms.ts'

/** How many lanes may be claimed, in all and of a tenant. */
interface Room {
  limit: number
  of: (tenant: string) => number
}

interface Claim {
  table: string
  leaseMs: number
  perGroup: number
  room: Room
  /** The room of lanes with failures; null: they are treated like any other. */
  failingRoom: Room | null
  pace: Pace | undefined
  /** In this order they get lanes. */
  groups: string[]
  /** Also claim lanes whose leases have lapsed. */
  lapsedToo: boolean
  /** Only lanes that are due since then (due-floor.ts). */
  from: number | null
}

interface Claimed {
  lanes: Lane[]
  /** Whether a group had more due lanes than its pace allows now. */
  paced: boolean
  /** Whose each group is. */
  tenants: ReadonlyMap<string, string>
  /** Tenants that got as many lanes as they had room for, and may have more. */
  heldBack: string[]
}

/** A group that may get `most` lanes. */
interface Open {
  grp: string
  tenant: string
  most: number
}

const groupsAClaim = 64
/** More than are due at a time while nothing is late. */
const lanesLookedAt = 256
/** So many groups are skipped in a few milliseconds, whether they are due or wait. */
const groupsWalked = 2_000

/** Groups whose turn it is. */
export interface DueGroups {
  groups: string[]
  /** The group to begin behind next time; empty: at the first. */
  last: string
  /** Before it no lane was due that nobody held, and what is new will not be (due-floor.ts). */
  floor: number | null
}

/**
 * Groups with due lanes. While few lanes are due, these are all such groups, found without a look at lanes that wait. While many are,
 * groups take turns: it begins behind `after`. Behind as many that only wait as one look walks over, those of the lanes that have been due
 * the longest stand in for the rest of a turn. Lanes that are due since before `from` are left out.
 */
export async function findDueGroups(
  sql: Sql,
  table: string,
  { after = '', from = null }: { after?: string; from?: number | null } = {},
): Promise<DueGroups> {
  const { soonest, floor } = await soonestLanes(sql, table, from)
  if (soonest.length < lanesLookedAt) return { groups: [...new Set(soonest)], last: '', floor }
  const behind = await dueGroups(sql, table, after)
  const around = behind.last === '' && after !== '' ? (await dueGroups(sql, table, '')).groups : []
  const groups = new Set([...behind.groups, ...around])
  for (const grp of soonest) if (groups.size < groupsAClaim) groups.add(grp)
  return { groups: [...groups], last: behind.last, floor }
}

/** Claims due lanes, a few of each group. */
export async function claimLanes(tx: TransactionSql, claim: Claim): Promise<Claimed> {
  if (claim.pace) return claimPaced(tx, claim, claim.pace)
  const owned = claim.groups.map((grp) => ({ grp, tenant: grp }))
  const open = allot(owned, claim, claim.room)
  const { failingRoom, room } = claim
  const healthy = await claimPlain(tx, claim, open, room.limit, failingRoom ? tx`and failures = 0` : tx``)
  const left = Math.min(failingRoom?.limit ?? 0, room.limit - healthy.length)
  const failing =
    failingRoom && left > 0
      ? await claimPlain(tx, claim, allot(owned, claim, failingRoom), left, tx`and failures > 0`)
      : []
  return { ...told(claim, open, healthy), lanes: [...healthy, ...failing], paced: false }
}

/** What each group may get: the room of a tenant is that of all its groups. */
function allot(groups: Omit<Open, 'most'>[], { perGroup }: Claim, room: Room): Open[] {
  return [...Map.groupBy(groups, ({ tenant }) => tenant)].flatMap(([tenant, own]) => {
    const all = room.of(tenant)
    return own.map((group, n) => ({ ...group, most: Math.min(perGroup, partOf(all, n, own.length)) }))
  })
}

function told({ perGroup }: Claim, open: Open[], lanes: Lane[]): Pick<Claimed, 'tenants' | 'heldBack'> {
  const claimed = Map.groupBy(lanes, ({ group }) => group)
  return {
    tenants: new Map(open.map(({ grp, tenant }) => [grp, tenant])),
    heldBack: open.flatMap(({ grp, tenant, most }) =>
      most < perGroup && (claimed.get(grp)?.length ?? 0) === most ? [tenant] : [],
    ),
  }
}

/**
 * A statement: lanes that nobody holds and that have been due the longest, the first of them first; those that are due since `from`. It is
 * written so that Postgres can only use the index made for it: to walk over 20,000 groups that wait for their time would take 50 ms, each time.
 */
export const longestDue = (sql: Sql, table: string, limit: number, from: number | null = null): Fragment => sql`
  select grp, due_at from ${sql(table)}
  where coalesce(due_at, 'infinity') < 'infinity' and coalesce(due_at, 'infinity') <= now() and held_until < now()
    and coalesce(due_at, 'infinity') >= ${timeOfFloor(sql, from)}
  order by coalesce(due_at, 'infinity') limit ${limit}
`

/** The groups of these lanes, and the floor that the look at them tells (due-floor.ts). */
async function soonestLanes(sql: Sql, table: string, from: number | null) {
  const rows = await sql<{ grp: string | null; floor: number }[]>`
    select l.grp, ${floorOf(sql, sql`l.due_at`)} as floor
    from (select) one left join lateral (${longestDue(sql, table, lanesLookedAt, from)}) l on true
  `
  return { soonest: rows.flatMap(({ grp }) => grp ?? []), floor: rows[0]?.floor ?? null }
}

/**
 * Groups with a due lane that nobody holds, by name, found by skipping from group to group in the index; and where the walk ended, empty
 * behind the last group.
 */
async function dueGroups(tx: Sql, table: string, after: string): Promise<Omit<DueGroups, 'floor'>> {
  const rows = await tx<{ grp: string; isDue: boolean; isLast: boolean }[]>`
    with recursive g as (
      (select grp, due_at, 1 as n from ${tx(table)} where due_at is not null and held_until < now() and grp > ${after}
        order by grp, due_at limit 1)
      union all
      select o.grp, o.due_at, g.n + 1 from g cross join lateral (
        select grp, due_at from ${tx(table)} where due_at is not null and held_until < now() and grp > g.grp
        order by grp, due_at limit 1
      ) o where g.n < ${groupsWalked}
    )
    select grp, due_at <= now() as is_due, n = ${groupsWalked} as is_last
    from g where due_at <= now() or n = ${groupsWalked} limit ${groupsAClaim}
  `
  const end = rows.at(-1)
  const isCut = rows.length === groupsAClaim || end?.isLast
  return { groups: rows.flatMap(({ grp, isDue }) => (isDue ? grp : [])), last: isCut && end ? end.grp : '' }
}

const isFree = (tx: TransactionSql, { lapsedToo }: Claim) =>
  lapsedToo ? tx`held_until < now()` : tx`held_until = '-infinity'`

/**
 * Part of a statement: due lanes that nobody has in hand, locked. Materialized: as a subquery it may be run again for each row
 * that is updated, each time skipping those before, and then claims all there are.
 */
const dueLanes = (tx: TransactionSql, claim: Claim, open: Open[], limit: number, only: Fragment) => tx`
  due as materialized (
    select d.id as due_id
    from json_to_recordset(${JSON.stringify(open)}::text::json) as g(grp text, most int) cross join lateral (
      select id from ${tx(claim.table)}
      where grp = g.grp and due_at >= ${timeOfFloor(tx, claim.from)} and due_at <= now() and ${isFree(tx, claim)} ${only}
      order by due_at limit g.most for update skip locked
    ) d limit ${limit}
  )
`

async function claimPlain(tx: TransactionSql, claim: Claim, all: Open[], limit: number, only: Fragment) {
  const open = all.filter(({ most }) => most > 0)
  if (open.length === 0) return []
  return tx<Lane[]>`
    with ${dueLanes(tx, claim, open, limit, only)}
    update ${tx(claim.table)} as lane set held_until = now() + ${claim.leaseMs} * interval '1 ms'
    from due where ${isLaneOf(tx, 'due', 'due_id')} returning ${laneColumns(tx, 'lane')}
  `
}

async function claimPaced(tx: TransactionSql, claim: Claim, pace: Pace): Promise<Claimed> {
  const { table, leaseMs, room, groups } = claim
  const allowed = await tx<{ grp: string; tenant: string | null; tokens: number }[]>`
    select grp, open_for as tenant, ${tokensOf(tx, pace.burstMs)} as tokens
    from ${tx(pace.table)} where grp = any(${groups}::text[]) order by grp for update skip locked
  `
  const rows = new Map(allowed.map((row) => [row.grp, row]))
  const tokensOfGroup = (grp: string) => rows.get(grp)?.tokens ?? 0
  const within = groups.filter((grp) => tokensOfGroup(grp) > 0)
  const paced = within.length < groups.length
  const all = allot(
    within.map((grp) => ({ grp, tenant: rows.get(grp)?.tenant ?? grp })),
    claim,
    room,
  )
  const open = all.flatMap((one) =>
    one.most > 0 ? [{ ...one, most: Math.min(one.most, tokensOfGroup(one.grp)) }] : [],
  )
  if (open.length === 0) return { lanes: [], paced, ...told(claim, all, []) }
  const lanes = await tx<Lane[]>`
    with ${dueLanes(tx, claim, open, room.limit, tx``)}, claimed as (
      update ${tx(table)} as lane set held_until = now() + ${leaseMs} * interval '1 ms'
      from due where ${isLaneOf(tx, 'due', 'due_id')} returning ${laneColumns(tx, 'lane')}
    ), charged as (
      ${charging(tx, pace.table, tx`select "group" as grp, count(*) from claimed group by 1`)}
    )
    select * from claimed
  `
  return { lanes, paced, ...told(claim, all, lanes) }
}
