import { subscriptionDisabled } from '@app/shared/contracts/webhook-events.ts'
import type { Fragment, TransactionSql } from '@app/shared/database/database.ts'
import type { Directive, Done, LockLanes } from '@app/shared/mailbox/mailbox.ts'
import { countReplayed, lockReplays } from '../replays/count-replayed.ts'
import { isOperational, tellOf } from '../subscriptions/tell-of.ts'
import { excuseElsewhere } from './elsewhere.ts'
import { endAccepted } from './end-accepted.ts'
import { lockLines, promoteLines } from './lines.ts'
import type { Ended, LaneHealth } from './lane-health.ts'
import type { Attempt } from './open-attempts.ts'
import type { Outcome } from './outcome.ts'
import { retryDelayMs } from './schedule.ts'
import { switchSubscriptions } from './switch-subscriptions.ts'
import { lostOf, retakeLane, wakeWithin } from './wake-lane.ts'

type DoneAttempt = Done<Attempt, Outcome>

/** Records what attempts came to, and says what their lanes do next. */
export async function recordAttempts(
  tx: TransactionSql,
  ended: DoneAttempt[],
  health: LaneHealth,
  lockLanes: LockLanes,
): Promise<Directive[]> {
  const done = await excuseElsewhere(tx, ended)
  const inLine = done.map(({ item }) => ({ subscriptionId: item.laneId, line: item.line }))
  await lockLines(tx, inLine)
  await lockReplays(
    tx,
    done.map(({ item }) => item.replayId),
  )
  const written = await write(tx, done.map(rowOf))
  const late = new Set(written.flatMap(({ id, isLate }) => (isLate ? [id] : [])))
  const gone = written.filter(({ isLate }) => !isLate)
  await endAccepted(
    tx,
    done.flatMap(({ item }) => (late.has(item.id) ? [item] : [])),
  )
  const promoted = await promoteLines(tx, inLine)
  await tellOf(
    tx,
    subscriptionDisabled,
    gone.map(({ id }) => ({ id })),
    'gone',
  )
  const next = await directives(tx, done, health, lockLanes)
  const lost = await lostOf(
    tx,
    done.flatMap(({ lane, outcome }) => (isOpen(outcome) || promoted.has(lane.id) ? [lane] : [])),
  )
  if (lost.length === 0 && gone.length === 0) return next
  await lockLanes()
  await wakeWithin(tx, lost)
  // What waits for an endpoint that is gone dies now, even if another attempt was told to wait.
  for (const { id } of gone) await retakeLane(tx, id)
  return next
}

/** Whether the delivery stays open; one that was not begun after all is as it was before. */
const isOpen = (outcome: Outcome | null) => outcome === null || outcome.kind === 'failed' || outcome.kind === 'wait'

/** What the row of a delivery becomes. */
function rowOf({ item, outcome }: DoneAttempt) {
  const row = { id: item.id, lane: item.laneId, number: item.number }
  if (!outcome) return { ...row, verdict: 'unbegun' }
  const { attempt } = outcome
  const told = {
    ...row,
    started_at: new Date(attempt.startedAtMs).toISOString(),
    duration_ms: attempt.durationMs,
    status: attempt.status,
    snippet: attempt.snippet,
    error_code: attempt.error?.code,
    error_message: attempt.error?.message,
  }
  switch (outcome.kind) {
    case 'succeeded':
      return { ...told, verdict: 'succeeded' }
    case 'gone':
      return { ...told, verdict: 'dead', code: 'gone' }
    case 'expired':
      return { ...told, verdict: 'dead', code: 'expired' }
    case 'wait':
      return { ...told, verdict: 'again', wait_ms: outcome.waitMs, tries: item.tries }
    case 'failed':
      return { ...told, ...afterFailure(item) }
  }
}

/** A probe uses no place of the schedule and leaves the delivery's time as it is. */
function afterFailure({ isProbe, tries }: Attempt) {
  if (isProbe) return { verdict: 'again', wait_ms: null, tries }
  const waitMs = retryDelayMs(tries + 1)
  return waitMs === null ? { verdict: 'dead' } : { verdict: 'again', wait_ms: waitMs, tries: tries + 1 }
}

/**
 * One statement for all. Rows that another holder has begun again meanwhile are left to it. Answers subscriptions whose endpoints are
 * gone, and deliveries that succeeded in an attempt that is not their last one.
 */
const write = (tx: TransactionSql, rows: object[]) => tx<{ id: string; isLate: boolean }[]>`
  with u as (
    select * from json_to_recordset(${JSON.stringify(rows)}::text::json) as u(id text, lane text, number int, verdict text,
      code text, wait_ms float8, tries int, started_at timestamptz, duration_ms int, status int, snippet text,
      error_code text, error_message text)
  ), o as materialized (
    -- Columns of their own, of which the planner expects many: else each is looked up with the ids of all.
    select *, verdict in ('succeeded', 'dead') as is_over, verdict = 'again' as is_again, verdict = 'unbegun' as is_unbegun from (
      select u.id, u.number, u.wait_ms, u.tries,
        case when u.verdict = 'again' and (s.id is null or s.status = 'disabled') then 'dead' else u.verdict end as verdict,
        case when u.verdict <> 'again' then u.code when s.id is null then 'subscription_deleted'
          when s.status = 'disabled' then 'subscription_disabled' end as code
      from u left join lateral (select id, status from subscriptions where id = u.lane and u.verdict = 'again' limit 1) s on true
    ) o
  ), made as (
    insert into attempts (delivery_id, number, started_at, duration_ms, response_status, response_body_snippet,
      error_code, error_message)
    select id, number, started_at, duration_ms, status, snippet, error_code, error_message
    from u where verdict <> 'unbegun' order by id
    -- It was taken for interrupted, since its holder was frozen or could not reach the database.
    on conflict (delivery_id, number) do update set started_at = excluded.started_at, duration_ms = excluded.duration_ms,
      response_status = excluded.response_status, response_body_snippet = excluded.response_body_snippet,
      error_code = excluded.error_code, error_message = excluded.error_message
    where attempts.error_code = 'interrupted'
  ), over as (
    delete from due_deliveries d using o
    where ${isOf(tx, tx`o.is_over`)}
    returning d.id, d.organization_id, d.subscription_id, d.event_type, d.replay_id, o.verdict, o.code
  ), dead as (
    insert into dead_deliveries (id, organization_id, subscription_id, event_type, error_code)
    select id, organization_id, subscription_id, event_type, code from over where verdict = 'dead' on conflict (id) do nothing
  ), ${countReplayed(tx)}, again as (
    update due_deliveries d set begun_at = null, tried = true, tries = o.tries,
      due_at = case when o.wait_ms is null then d.due_at else now() + o.wait_ms * interval '1 ms' end
    from o where ${isOf(tx, tx`o.is_again`)}
  ), unbegun as (
    update due_deliveries d set begun_at = null, attempts = d.attempts - 1
    from o where ${isOf(tx, tx`o.is_unbegun`)}
  ), gone as (
    update subscriptions set status = 'disabled', disabled_reason = 'gone', disabled_at = now(), paused_at = null,
      updated_at = now()
    where id in (select lane from u where code = 'gone') and status <> 'disabled' returning id
  )
  select id, false as is_late from gone
  union all
  select id, true from o where verdict = 'succeeded' and id not in (select id from over where verdict = 'succeeded')
`

/** The delivery `d` of an outcome `o`, looked up by its key: a mere join was seen to read hundreds of entries for each. */
const isOf = (tx: TransactionSql, verdict: Fragment) => tx`
  d.id = o.id and d.attempts = o.number and ${verdict} and d.id = any(array(select id from o where ${verdict}))
`

async function directives(
  tx: TransactionSql,
  done: DoneAttempt[],
  health: LaneHealth,
  lockLanes: LockLanes,
): Promise<Directive[]> {
  // Whoever resumed a subscription, or gave it another URL, has taken its lane from the hold of these attempts.
  const current = done.filter(({ lane }) => !health.isOver(lane))
  const streaks = [...Map.groupBy(current, ({ item }) => item.laneId)].flatMap(([laneId, [first, ...others]]) => {
    if (!first) return []
    const all = [first, ...others]
    const ends = all.flatMap(({ item, outcome }) => endOf(item, outcome))
    const { lane } = first
    return [{ laneId, lane, ...health.after(lane, ends), ...whoEnded(all) }]
  })
  // The common case: a healthy lane that goes on.
  const noted = streaks.filter(
    ({ failures, lane, waitMs }) => failures > 0 || lane.failures > 0 || waitMs !== null || lane.pacedMs > 0,
  )
  const paused = await switchSubscriptions(tx, noted, lockLanes)
  return noted.map(({ laneId, failures, waitMs }) => {
    const waits = paused.has(laneId) ? Math.max(health.pause(laneId), waitMs ?? 0) : waitMs
    return { laneId, failures, waitMs: waits, pacedMs: waits ?? 0 }
  })
}

/** What the switches of a subscription need to know of a lane's attempts. */
const whoEnded = (done: DoneAttempt[]) => ({
  healedAt: done.findLast(({ item, outcome }) => outcome?.kind === 'succeeded' && item.isPaused)?.item.url ?? null,
  failsItself: done.some(({ item, outcome }) => outcome?.kind === 'failed' && !isOperational(item.payload?.type)),
})

function endOf({ isProbe, probedMs, isPaused }: Attempt, outcome: Outcome | null): Ended[] {
  switch (outcome?.kind) {
    case 'succeeded':
      return [{ as: 'success', tookMs: outcome.attempt.durationMs }]
    case 'failed':
      return [{ as: 'failure', isProbe, probedMs, isPaused }]
    case 'wait':
      return [{ as: 'wait', waitMs: outcome.waitMs }]
    case 'gone':
    case 'expired':
      return []
    case undefined:
      return [{ as: 'unbegun' }]
  }
}
