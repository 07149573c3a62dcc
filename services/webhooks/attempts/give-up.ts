import type { DeliveryErrorCode } from '@app/shared/contracts/webhook-deliveries.ts'
import type { Fragment, Sql, TransactionSql } from '@app/shared/database/database.ts'
import type { Sweep } from '@app/shared/database/housekeeping.ts'
import { firstIdAt } from '@app/shared/values/ids.ts'
import type { Core } from '../app.ts'
import { countReplayed, lockReplays } from '../replays/count-replayed.ts'
import { notInCall } from './in-call.ts'
import { noteInterrupted } from './interrupted.ts'
import { type InLine, lockLines, promoteLines } from './lines.ts'
import { wakeWithin } from './wake-lane.ts'

/** Open deliveries that one statement gives up, in some 0.1 s: events for its subscription wait for that, and behind them those of others. */
const mostAtOnce = 2_000
export const keepOpenDays = 7
const dayMs = 24 * 60 * 60 * 1000
const keepOpenRows = 100_000
/** How many that are beyond their time, or their subscription's number, go at once. */
const mostExpired = 5_000

export type GivenUp = Extract<DeliveryErrorCode, 'subscription_deleted' | 'subscription_disabled' | 'expired'>

/**
 * Makes the open deliveries of a subscription dead, but for those in a call or just being recorded; answers how many. Those
 * without a time go first, and the last of a line before the one in front of it: what is left can still be found, and
 * delivered if the subscription is enabled again.
 *
 * Whoever calls this holds the lane, and others lock a replay before its lane: so deliveries whose replay is locked are left, too.
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
          and (replay_id is null or exists (select from replays where id = replay_id for no key update skip locked))
        order by due_at desc nulls first, seq desc limit ${limit} for update skip locked
      )) returning id, organization_id, subscription_id, event_type, replay_id, attempts, begun_at, 'dead' as verdict
    ), ${countReplayed(tx)}, lost as (
      ${noteInterrupted(tx, tx`over`)}
    )
    insert into dead_deliveries (id, organization_id, subscription_id, event_type, error_code)
    select id, organization_id, subscription_id, event_type, ${why} from over on conflict (id) do nothing
  `
  return count
}

/** The first id that a delivery which is open then, in epoch ms, may have: those before it are given up. */
export const firstOpenAt = (ms: number): string => firstIdAt('wbd', new Date(ms - keepOpenDays * dayMs))

/** What waited seven days for its endpoint is given up. */
export const createExpirySweep = ({ meters }: Pick<Core, 'meters'>): Sweep =>
  async function sweepExpired(sql) {
    const before = firstOpenAt(Date.now())
    const count = await sql.begin((tx) =>
      expire(tx, tx`select id from due_deliveries where id < ${before} order by id limit ${mostExpired}`),
    )
    meters.dead.inc({ reason: 'expired' }, count)
    return count
  }

/** Looks of one run, of up to half a second each; the next run goes on where this one ended. */
const mostLooks = 10
/** Subscriptions of one look. */
const mostLookedAt = 1_000

/** A subscription holds 100,000 open deliveries; beyond that its oldest are given up. */
export function createOverflowSweep({ meters, log }: Pick<Core, 'meters' | 'log'>, most = keepOpenRows): Sweep {
  let after = ''
  return async function sweepOverflow(sql) {
    for (let looks = 0; looks < mostLooks; looks++) {
      const found = await lookOn(sql, after, most)
      if (found && found.open > most) {
        const count = await sql.begin((tx) => expire(tx, oldest(tx, found.id, found.open - most)))
        if (count > 0) {
          meters.dead.inc({ reason: 'overflow' }, count)
          log.warn(
            { subscription: found.id, count },
            'more deliveries wait than a subscription holds: the oldest are given up',
          )
          return count
        }
      }
      after = found?.id ?? ''
      if (!found) return 0
    }
    return 0
  }
}

/**
 * The first subscription behind `after` that holds more than `most`, or the last one of this look, with what it holds; null: none is
 * left. Counted from subscription to subscription, a part of all at a time: all together are perhaps more than a statement can
 * count in its time.
 */
async function lookOn(sql: Sql, after: string, most: number) {
  const [last] = await sql<{ id: string; open: number }[]>`
    with recursive s as (
      select ${after}::text collate "C" as id, 0 as open, 0 as n, 0 as counted
      union all
      select next.id, held.open, s.n + 1, s.counted + held.open
      from s cross join lateral (
        select subscription_id as id from due_deliveries where subscription_id > s.id order by subscription_id limit 1
      ) next cross join lateral (
        select count(*)::int as open from (
          select from due_deliveries where subscription_id = next.id limit ${most + mostExpired}
        ) d
      ) held
      where s.counted < ${most} and s.n < ${mostLookedAt}
    )
    select id, open from s where n > 0 order by n desc limit 1
  `
  return last ?? null
}

const oldest = (tx: TransactionSql, subscriptionId: string, count: number): Fragment => tx`
  select id from due_deliveries where subscription_id = ${subscriptionId} order by id limit ${count}
`

async function expire(tx: TransactionSql, which: Fragment) {
  const rows = await tx<(InLine & { id: string; replayId: string | null })[]>`
    select id, subscription_id, line, replay_id from due_deliveries where id in (${which}) and ${notInCall(tx)}
  `
  if (rows.length === 0) return 0
  await lockLines(tx, rows)
  await lockReplays(
    tx,
    rows.map(({ replayId }) => replayId),
  )
  const gone = await tx<InLine[]>`
    with over as (
      delete from due_deliveries where id = any(array(
        select id from due_deliveries where id = any(${rows.map(({ id }) => id)}) and ${notInCall(tx)} for update skip locked
      ))
      returning id, organization_id, subscription_id, event_type, line, replay_id, attempts, begun_at, 'dead' as verdict
    ), ${countReplayed(tx)}, lost as (
      ${noteInterrupted(tx, tx`over`)}
    ), dead as (
      insert into dead_deliveries (id, organization_id, subscription_id, event_type, error_code)
      select id, organization_id, subscription_id, event_type, 'expired' from over on conflict (id) do nothing
    )
    select subscription_id, line from over
  `
  await promoteLines(tx, gone)
  // A lane's time may be that of a delivery that is gone: the next of its line would wait for an attempt that is never made.
  const lanes = new Set(gone.flatMap(({ subscriptionId, line }) => (line === null ? [] : [subscriptionId])))
  if (lanes.size > 0) await wakeWithin(tx, [...lanes])
  return gone.length
}
