import type { Sql } from '@app/shared/database/database.ts'
import { type Mailbox, startMailbox } from '@app/shared/mailbox/mailbox.ts'
import type { Core } from '../app.ts'
import { createAsRead } from './as-read.ts'
import { createBegunAhead } from './begun-ahead.ts'
import { createDueFloors } from './due-floors.ts'
import { createLaneHealth } from './lane-health.ts'
import { createLongCalls } from './long-calls.ts'
import { makeAttempt } from './make-attempt.ts'
import { noteAttempt } from './note-attempt.ts'
import { type Attempt, nextDue, openAttempts } from './open-attempts.ts'
import type { Outcome } from './outcome.ts'
import { pausedByHand } from './paused.ts'
import { recordAttempts } from './record-attempts.ts'
import { createKeysOf } from './sign.ts'

/** Attempts under way at a time, in this process, beside those that have waited long for their endpoints. */
const slots = 1_000
/** Lanes with failures hold at most so many of the slots, so that a wave of dead endpoints delays nobody. */
const failingShare = 0.2
/** Share of the slots that attempts may hold which are begun ahead and wait. */
const waitingShare = 0.3

/**
 * Delivers what fan-out recorded. A lane is a subscription, its group the organization; whoever holds the lane knows what
 * is in flight to that endpoint, so its cap, its breaker and its slow start need no count in SQL.
 */
export function startAttempts(core: Core): Mailbox {
  const keysOf = createKeysOf(core.sealKeys)
  const isAsRead = createAsRead(core.sql)
  const health = createLaneHealth(slots * failingShare)
  const ahead = createBegunAhead(health, slots * waitingShare)
  const longCalls = createLongCalls()
  const floors = createDueFloors()
  return startMailbox<Attempt, Outcome>(core, {
    lanes: 'lanes',
    slots,
    beside: longCalls.count,
    failingShare,
    refill: true,
    capacity: ahead.capacity,
    next: (tx, wants) =>
      ahead.beginning(() => {
        health.claimed(wants.flatMap(({ lane, fresh }) => (fresh ? [lane] : [])))
        return openAttempts(tx, core.payloads, floors, wants)
      }),
    nextDue: (tx, laneIds) => nextDue(tx, floors, laneIds),
    async work(attempt, hold, mayBegin) {
      const leave = await ahead.enter(hold)
      if (!leave) return null
      if (!(await isAsRead(attempt))) {
        leave(true)
        return null
      }
      const ended = health.begun(hold)
      const over = longCalls.begin(attempt.payload?.body.length ?? 0)
      const outcome = await makeAttempt(core, attempt, { keysOf, mayBegin }).finally(over)
      const isSuccess = outcome?.kind === 'succeeded'
      ended(isSuccess)
      leave(isSuccess || outcome === null || outcome.kind === 'expired')
      if (outcome) noteAttempt(core.meters, attempt, outcome)
      return outcome
    },
    settle(tx, done, lockLanes) {
      // A settlement that was rolled back is worked out anew.
      health.rollback()
      return recordAttempts(tx, done, health, lockLanes)
    },
    settled: health.commit,
    rescue: wakeSleepers,
  })
}

/** Lanes that sleep beside a delivery that has a time; found by skipping from subscription to subscription. */
export async function wakeSleepers(sql: Sql): Promise<number> {
  const { count } = await sql`
    with recursive open as (
      (select subscription_id from due_deliveries where due_at is not null order by subscription_id limit 1)
      union all
      select n.subscription_id from open o cross join lateral (
        select subscription_id from due_deliveries where due_at is not null and subscription_id > o.subscription_id
        order by subscription_id limit 1
      ) n
    )
    update lanes l set due_at = now() from open
    where l.id = open.subscription_id and l.due_at is null
      and not exists (select from subscriptions s where s.id = l.id and ${pausedByHand(sql)})
  `
  return count
}
