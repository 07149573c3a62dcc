import type { Sql } from '@app/shared/database.ts'
import { type Mailbox, startMailbox } from '@app/shared/mailbox.ts'
import type { Core } from '../app.ts'
import { createLaneHealth, mostAtOnce } from './lane-health.ts'
import { makeAttempt } from './make-attempt.ts'
import { noteAttempt } from './note-attempt.ts'
import { type Attempt, nextDue, openAttempts } from './open-attempts.ts'
import type { Outcome } from './outcome.ts'
import { pausedByHand } from './paused.ts'
import { recordAttempts } from './record-attempts.ts'
import { createKeysOf } from './sign.ts'
import { createTurnstile } from './turnstile.ts'

/** Attempts under way at a time, in this process. Most of them wait for an endpoint. */
const slots = 1_000
/** Lanes with failures hold at most so many of the slots, so that a wave of dead endpoints delays nobody. */
const failingShare = 0.2
/**
 * Attempts that are begun ahead for a quick endpoint: what ends is recorded, and what follows picked, some dozens together, so
 * that the endpoint need not wait for Postgres after every ten. They go out as the others, ten at a time.
 */
const begunAhead = 30
/** All that wait hold at most this share of the slots, so that no other endpoint's attempts have to wait for one. */
const waitingShare = 0.3
/** An attempt goes out with the address, the secrets and the status that its subscription had so long ago at most. */
const patienceMs = 250
/** How long the subscriptions of a holder that died wait; longer attempts renew it. */
const leaseMs = 15_000

/**
 * Delivers what fan-out recorded. A lane is a subscription, its group the organization; whoever holds the lane knows what
 * is in flight to that endpoint, so its cap, its breaker and its slow start need no count in SQL.
 */
export function startAttempts(core: Core): Mailbox {
  const keysOf = createKeysOf(core.sealKeys)
  const health = createLaneHealth(undefined, slots * failingShare)
  const turnstile = createTurnstile({ atOnce: mostAtOnce, patienceMs })
  return startMailbox<Attempt, Outcome>(core, {
    lanes: 'lanes',
    leaseMs,
    slots,
    failingShare,
    refill: true,
    capacity(lane) {
      const isAhead = health.isQuick(lane) && turnstile.waiting() < slots * waitingShare
      return health.capacity(lane) + (isAhead ? begunAhead : 0)
    },
    next(tx, wants) {
      health.claimed(wants.flatMap(({ lane, fresh }) => (fresh ? [lane] : [])))
      return openAttempts(tx, core.payloads, wants)
    },
    nextDue,
    async work(attempt) {
      const leave = await turnstile.enter(attempt.laneId)
      if (!leave) return null
      const ended = health.begun(attempt.laneId)
      const outcome = await makeAttempt(core, attempt, keysOf)
      const isSuccess = outcome.kind === 'succeeded'
      ended(isSuccess)
      leave(isSuccess || outcome.kind === 'expired')
      noteAttempt(core.meters, attempt, outcome)
      return outcome
    },
    settle(tx, done) {
      // A settlement that was rolled back is worked out anew.
      health.rollback()
      return recordAttempts(tx, done, health)
    },
    settled: health.commit,
    rescue: wakeSleepers,
  })
}

/** Lanes that sleep beside a delivery that has a time; found by skipping from subscription to subscription. */
async function wakeSleepers(sql: Sql): Promise<number> {
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
