import { subscriptionFailing, subscriptionPaused, subscriptionResumed } from '@app/shared/contracts/webhook-events.ts'
import type { TransactionSql } from '@app/shared/database/database.ts'
import type { Lane } from '@app/shared/mailbox/lanes.ts'
import type { LockLanes } from '@app/shared/mailbox/mailbox.ts'
import { tellOf } from '../subscriptions/tell-of.ts'
import { breakerFailures, pauseFailures } from './lane-health.ts'
import { pausedItself } from './paused.ts'

/** A pause needs failures over that long: an endpoint that is being deployed fails for less. */
const pauseAfterMinutes = 10

/** A lane that fails, or did before these attempts. `lane.failures` are those before, `failures` those after. */
interface Streak {
  lane: Lane
  failures: number
  isNewStreak: boolean
  /** Where a subscription that had paused itself got an attempt through. */
  healedAt: string | null
  /** Among the failed attempts is one of an event that does not itself tell of a subscription. */
  failsItself: boolean
}

/**
 * Applies the policy of failures in a row: five are told to the owner, twenty over ten minutes pause the subscription, and a
 * success makes one that paused itself active again. Answers the subscriptions that it has paused. Their rows are locked already
 * (elsewhere.ts), since whoever changes a subscription locks it before its lane.
 */
export async function switchSubscriptions(
  tx: TransactionSql,
  streaks: Streak[],
  lockLanes: LockLanes,
): Promise<Set<string>> {
  if (streaks.length === 0) return new Set()
  const begun = streaks.filter(({ isNewStreak }) => isNewStreak)
  const long = streaks.filter(({ failures }) => failures >= pauseFailures)
  const opened = streaks.filter(({ lane, failures }) => lane.failures < breakerFailures && failures >= breakerFailures)
  if (begun.length > 0 || long.length > 0 || opened.length > 0) await lockLanes()
  await beginStreaks(tx, begun)
  await beginProbes(tx, opened)
  await heal(tx, streaks)
  // Failures of these very events are not told, so that two dead endpoints do not tell of each other for ever.
  const told = opened.filter(({ failsItself }) => failsItself)
  await tellOf(tx, subscriptionFailing, told.map(named), 'consecutive_failures')
  return pause(tx, long)
}

const named = ({ lane, failures }: Streak) => ({ id: lane.id, failures })

async function beginStreaks(tx: TransactionSql, streaks: Streak[]) {
  if (streaks.length === 0) return
  await tx`update lanes set failing_since = now() where id in ${heldBy(tx, streaks)}`
}

async function beginProbes(tx: TransactionSql, streaks: Streak[]) {
  if (streaks.length === 0) return
  await tx`update lanes set probed_since = now() where id in ${heldBy(tx, streaks)}`
}

/** By whoever held the lane, but not by a success at an earlier address: that says nothing about the one that it has now. */
async function heal(tx: TransactionSql, streaks: Streak[]) {
  const rows = streaks.flatMap(({ lane: { id }, healedAt: url }) => (url === null ? [] : [{ id, url }]))
  if (rows.length === 0) return
  const healed = await tx<{ id: string }[]>`
    update subscriptions s set status = 'active', disabled_reason = null, paused_at = null, updated_at = now()
    from json_to_recordset(${JSON.stringify(rows)}::text::json) as h(id text, url text)
    where s.id = h.id and s.url = h.url and ${pausedItself(tx)} returning s.id
  `
  const byId = new Map(streaks.map((streak) => [streak.lane.id, named(streak)]))
  await tellOf(
    tx,
    subscriptionResumed,
    healed.flatMap(({ id }) => byId.get(id) ?? []),
    'recovered',
  )
}

/** Only by who still holds the lane: after a resumption by hand the count has begun anew. */
async function pause(tx: TransactionSql, streaks: Streak[]) {
  if (streaks.length === 0) return new Set<string>()
  const paused = await tx<{ id: string }[]>`
    update subscriptions set status = 'paused', disabled_reason = 'consecutive_failures', paused_at = now(),
      updated_at = now()
    where status = 'active' and id in (
      select id from lanes where failing_since <= now() - ${pauseAfterMinutes} * interval '1 minute'
        and id in ${heldBy(tx, streaks)}
    ) returning id
  `
  const byId = new Map(streaks.map((streak) => [streak.lane.id, named(streak)]))
  await tellOf(
    tx,
    subscriptionPaused,
    paused.flatMap(({ id }) => byId.get(id) ?? []),
    'consecutive_failures',
  )
  return new Set(paused.map(({ id }) => id))
}

/** The lanes of these that nobody has taken over. */
function heldBy(tx: TransactionSql, streaks: Streak[]) {
  const held = streaks.map(({ lane }) => ({ id: lane.id, held_until: lane.heldUntil }))
  return tx`(
    select l.id from json_to_recordset(${JSON.stringify(held)}::text::json) as h(id text, held_until timestamptz)
    join lanes l on l.id = h.id and l.held_until = h.held_until
  )`
}
