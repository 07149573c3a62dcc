import type { Fragment, TransactionSql } from '@app/shared/database/database.ts'
import { each } from '@app/shared/database/each.ts'

/**
 * Deliveries of one line (a customer's events) go one at a time, in the order in which they came. Only a line's first open
 * delivery has a time; the next one gets it when the first is done.
 */
export interface InLine {
  subscriptionId: string
  /** Null: in no line. */
  line: string | null
}

/**
 * To be called before a line is looked at, or its first delivery is taken away: then whoever comes second sees what the first did.
 * Without it a delivery could be put behind one that has just left, and wait for ever.
 */
export async function lockLines(tx: TransactionSql, deliveries: Pick<InLine, 'line'>[]): Promise<void> {
  const lines = deliveries.flatMap(({ line }) => line ?? [])
  if (lines.length === 0) return
  await tx`
    select pg_advisory_xact_lock(key) from (
      select distinct hashtextextended(line, 0) as key from ${each(tx, lines)} line order by key
    ) k
  `
}

/**
 * To be called once lines are locked, before deliveries are put behind open ones: holds the first delivery of each line until the
 * commit. For whoever gives up a disabled subscription's deliveries does not lock their lines, and the subscription may be enabled
 * again by then. Only for the subscriptions that `matching` names for the events of an audience `k`: an organization may have
 * thousands of others, such as one for each number.
 */
export async function holdFirst(tx: TransactionSql, events: { k: number; line: string | null }[], matching: Fragment) {
  const lines = events.flatMap(({ k, line }) => (line === null ? [] : [{ k, line }]))
  if (lines.length === 0) return
  await tx`
    with m as materialized (${matching})
    select from (
      select first.id from (
        select distinct k, line from json_to_recordset(${JSON.stringify(lines)}::text::json) as l(k int, line text)
      ) l
      join m using (k)
      cross join lateral (
        select id from due_deliveries where subscription_id = m.subscription_id and line = l.line order by seq limit 1
      ) first
      order by first.id
    ) first
    cross join lateral (select from due_deliveries where id = first.id limit 1 for share) held
  `
}

/** Makes the first open delivery of each line due, if it has no time yet; answers the subscriptions of those. */
export async function promoteLines(tx: TransactionSql, left: InLine[]): Promise<Set<string>> {
  const lines = left.filter(({ line }) => line !== null)
  if (lines.length === 0) return new Set()
  const rows = lines.map(({ subscriptionId, line }) => ({ subscription_id: subscriptionId, line }))
  const promoted = await tx<{ subscriptionId: string }[]>`
    update due_deliveries d set due_at = now()
    from (
      select distinct subscription_id, line
      from json_to_recordset(${JSON.stringify(rows)}::text::json) as l(subscription_id text, line text)
    ) l cross join lateral (
      select id from due_deliveries where subscription_id = l.subscription_id and line = l.line order by seq limit 1
    ) first
    where d.id = first.id and d.due_at is null returning d.subscription_id
  `
  return new Set(promoted.map(({ subscriptionId }) => subscriptionId))
}
