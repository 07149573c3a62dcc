import type { Sql, TransactionSql } from '@app/shared/database/database.ts'
import { firstIdAt, timeOf } from '@app/shared/values/ids.ts'

/** What a job replays: deliveries with an id behind `position` and before `endId`. */
export interface Scope {
  /** The job, whose own deliveries are never among them: another instance's clock may be behind. Null: it is not made yet. */
  id: string | null
  organizationId: string
  subscriptionId: string
  source: 'dead' | 'failed'
  /** Null: all. */
  eventTypes: string[] | null
  position: string
  endId: string
  /** What died later is not its business; null: now. */
  matchedAt: string | null
}

export interface Matched {
  matched: number
  endId: string
  /** Where the next job goes on; null: this one takes them all. */
  nextSince: Date | null
}

/** Deliveries of one replay. */
export const mostMatched = 100_000

/** Of an id: `wbd_` and the characters of its time. */
const timeLength = 14

/** Behind it are the ids of this moment and of all later ones. */
export const before = (at: Date): string => firstIdAt('wbd', at).slice(0, timeLength)

/** Ids of dead or failed deliveries in the scope, oldest first. */
export const idsIn = (sql: Sql | TransactionSql, scope: Scope, limit: number) => sql`
  select k.id from ${scope.source === 'dead' ? sql`dead_deliveries` : sql`due_deliveries`} k
  where k.subscription_id = ${scope.subscriptionId}
    and k.id collate "POSIX" > ${scope.position} and k.id collate "POSIX" < ${scope.endId}
    ${scope.source === 'dead' ? diedBefore(sql, scope) : sql`and k.organization_id = ${scope.organizationId} and k.tried and ${isNoneOf(sql, scope)}`}
    ${scope.eventTypes === null ? sql`` : ofTypes(sql, scope, scope.eventTypes)}
  order by k.id collate "POSIX" limit ${limit}
`

const diedBefore = (sql: Sql | TransactionSql, { matchedAt }: Scope) =>
  matchedAt === null ? sql`` : sql`and k.died_at <= ${matchedAt}::text::timestamptz`

const isNoneOf = (sql: Sql | TransactionSql, { id }: Scope) =>
  id === null ? sql`true` : sql`k.replay_id is distinct from ${id}`

/** With the organization, which the index of dead ones by type begins with. */
const ofTypes = (sql: Sql | TransactionSql, { source, organizationId }: Scope, types: string[]) =>
  source === 'dead'
    ? sql`and k.organization_id = ${organizationId} and k.event_type = any(${types})`
    : sql`and exists (select from deliveries d where d.id = k.id and d.event_type = any(${types}) limit 1)`

/** Counts what a job would replay, at most 100,000: beyond that it ends before the moment of the next one. */
export async function matchDeliveries(sql: Sql | TransactionSql, scope: Scope): Promise<Matched> {
  const [found] = await sql<{ count: number; earlier: number; last: string | null }[]>`
    with m as materialized (${idsIn(sql, scope, mostMatched + 1)})
    select count(*)::int as count, max(id) as last,
      (count(*) filter (where left(id, ${timeLength}) < (select left(max(id), ${timeLength}) from m)))::int as earlier
    from m
  `
  if (!found?.last || found.count <= mostMatched) {
    return { matched: found?.count ?? 0, endId: scope.endId, nextSince: null }
  }
  const { earlier, last } = found
  const nextSince = timeOf(last)
  // When all of them are of one moment, the next job begins with it once more.
  if (earlier === 0) return { matched: mostMatched, endId: last, nextSince }
  return { matched: earlier, endId: before(nextSince), nextSince }
}
