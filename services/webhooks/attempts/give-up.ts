import type { Sql, TransactionSql } from '@app/shared/database/database.ts'
import { firstIdAt } from '@app/shared/values/ids.ts'
import { typeOf } from '../deliveries/type-of.ts'
import { countReplayed } from '../replays/count-replayed.ts'
import { notInCall } from './in-call.ts'
import { type InLine, lockLines, promoteLines } from './lines.ts'
import { wakeWithin } from './wake-lane.ts'

/** Open deliveries that one statement gives up: about 0.2 s. */
const mostAtOnce = 10_000
export const keepOpenDays = 7
const keepOpenRows = 100_000

export type GivenUp = 'subscription_deleted' | 'subscription_disabled' | 'expired'

/**
 * Makes the open deliveries of a subscription dead, but for those in a call or just being recorded; answers how many. Those
 * that have no time go first, the last of a line before the one in front of it: what is left can be found, and can be
 * delivered if it comes to that.
 */
export async function giveUp(
  tx: TransactionSql,
  subscriptionId: string,
  why: GivenUp,
  limit = mostAtOnce,
): Promise<number> {
  const { count } = await tx`
    with over as (
      delete from due_deliveries where id = any(array(
        select id from due_deliveries where subscription_id = ${subscriptionId} and ${notInCall(tx)}
        order by due_at desc nulls first, seq desc limit ${limit} for update skip locked
      )) returning id, organization_id, subscription_id, replay_id, 'dead' as verdict
    ), ${countReplayed(tx)}
    insert into dead_deliveries (id, organization_id, subscription_id, event_type, error_code)
    select id, organization_id, subscription_id, ${typeOf(tx)}, ${why} from over on conflict (id) do nothing
  `
  return count
}

/** A sweep: what waited seven days for its endpoint is given up. */
export function sweepExpired(sql: Sql): Promise<number> {
  const before = firstIdAt('wbd', new Date(Date.now() - keepOpenDays * 24 * 60 * 60 * 1000))
  return sql.begin((tx) => expire(tx, tx`select id from due_deliveries where id < ${before} order by id limit 5000`))
}

/** A sweep: a subscription holds 100,000 open deliveries; beyond that its oldest are given up. */
export function sweepOverflow(sql: Sql, most = keepOpenRows): Promise<number> {
  return sql.begin(async (tx) => {
    const [full] = await fullest(tx, most)
    if (!full) return 0
    const { subscriptionId, beyond } = full
    return expire(
      tx,
      tx`select id from due_deliveries where subscription_id = ${subscriptionId} order by id limit least(${beyond}::int, 5000)`,
    )
  })
}

/**
 * All rows are counted, so they are read as they lie: a million by index took 3 s. Millions take longer than any statement of a
 * service may, also like this; were they not counted then, they would only become more.
 */
async function fullest(tx: TransactionSql, most: number) {
  await tx`select set_config('enable_seqscan', 'on', true), set_config('statement_timeout', '10s', true)`
  const rows = await tx<{ subscriptionId: string; beyond: number }[]>`
    select subscription_id, (count(*) - ${most})::int as beyond from due_deliveries
    group by 1 having count(*) > ${most} limit 1
  `
  await tx`select set_config('enable_seqscan', 'off', true)`
  return rows
}

async function expire(tx: TransactionSql, which: ReturnType<TransactionSql>) {
  const rows = await tx<(InLine & { id: string })[]>`
    select id, subscription_id, line from due_deliveries where id in (${which}) and ${notInCall(tx)}
  `
  if (rows.length === 0) return 0
  await lockLines(tx, rows)
  const gone = await tx<InLine[]>`
    with over as (
      delete from due_deliveries where id = any(array(
        select id from due_deliveries where id = any(${rows.map(({ id }) => id)}) and ${notInCall(tx)} for update skip locked
      ))
      returning id, organization_id, subscription_id, line, replay_id, 'dead' as verdict
    ), ${countReplayed(tx)}, dead as (
      insert into dead_deliveries (id, organization_id, subscription_id, event_type, error_code)
      select id, organization_id, subscription_id, ${typeOf(tx)}, 'expired' from over on conflict (id) do nothing
    )
    select subscription_id, line from over
  `
  await promoteLines(tx, gone)
  // The lane's time was that of the one before it: the next of a line would wait for an attempt that is never made.
  const lanes = new Set(gone.flatMap(({ subscriptionId, line }) => (line === null ? [] : [subscriptionId])))
  if (lanes.size > 0) await wakeWithin(tx, [...lanes])
  return gone.length
}
