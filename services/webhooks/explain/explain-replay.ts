import type { Handler } from '@app/shared/api/contract.ts'
import { notFound } from '@app/shared/api/problem.ts'
import { type explainReplay as contract, type Moment, momentAt, standing } from '@app/shared/contracts/explain.ts'
import type { Sql } from '@app/shared/database/database.ts'
import { timeOf } from '@app/shared/values/ids.ts'
import type { App } from '../app.ts'
import { shareOf } from '../replays/enqueue-replays.ts'
import { replayColumns, type ReplayRow } from '../replays/replays.ts'
import { disabledSince, pausedItself, restOf } from './words.ts'

export const explainReplay: Handler<App, typeof contract> = async ({ sql }, { body: { id } }) => {
  const replay = await find(sql, id)
  if (!replay) throw notFound()
  return { history: [...pastOf(replay), standingOf(replay)] }
}

interface Replay extends ReplayRow {
  organizationId: string
  source: 'dead' | 'failed'
  /** Null: all. */
  eventTypes: string[] | null
  /** Ids of deliveries, or the characters of their time: it is behind the first, and ends before the second. */
  position: string
  endId: string
  dueAt: Date
  /** Its deliveries that wait for their first attempt. */
  waiting: number
  /** Its organization's replays that are under way. */
  jobs: number
  /** Organizations that have some. */
  owners: number
  /** Null: its subscription was deleted. */
  subscriptionStatus: 'active' | 'paused' | 'disabled' | null
  disabledReason: string | null
  failures: number | null
  pacedUntil: Date | null
}

async function find(sql: Sql, id: string) {
  const [found] = await sql<Replay[]>`
    select r.*, s.status as subscription_status, s.disabled_reason, l.failures,
      nullif(l.paced_until, '-infinity') as paced_until,
      (select count(*)::int from due_deliveries where replay_id = ${id} and not tried) as waiting,
      (select count(*)::int from replays o where o.organization_id = r.organization_id and finished_at is null) as jobs,
      (select count(distinct organization_id)::int from replays where finished_at is null) as owners
    from (
      select ${replayColumns(sql)}, organization_id, source, event_types, position, end_id, due_at from replays
      where id = ${id}
    ) r
    left join subscriptions s on s.id = r.subscription_id
    left join lanes l on l.id = r.subscription_id
  `
  return found
}

function pastOf(replay: Replay): Moment[] {
  const { organizationId, subscriptionId, source, eventTypes, createdAt, finishedAt, matched, status } = replay
  const about = { organization_id: organizationId, subscription_id: subscriptionId, event_types: eventTypes }
  const ends = { completed: 'its last delivery was enqueued', cancelled: 'was cancelled' }
  return [
    momentAt(createdAt, `was asked for: ${matched} ${source} deliveries`, about),
    ...(finishedAt && (status === 'completed' || status === 'cancelled') ? [momentAt(finishedAt, ends[status])] : []),
  ]
}

function standingOf(replay: Replay): Moment {
  const { status, matched, enqueued, succeeded, failed, position, endId, finishedAt, dueAt, nextSince } = replay
  return standing(wordsOf(replay), {
    status,
    matched,
    enqueued,
    succeeded,
    failed,
    under_way: enqueued - succeeded - failed,
    // The times of the deliveries that are replayed: how far it is, and where it ends.
    position: timeOf(position),
    until: timeOf(endId),
    ...(nextSince && { next_since: nextSince }),
    ...(finishedAt === null && { waiting: replay.waiting, next_at: dueAt }),
  })
}

function wordsOf(replay: Replay): string {
  const { status, enqueued, succeeded, failed, matched } = replay
  const open = enqueued - succeeded - failed
  const goesOn =
    open === 0 ? '' : `; ${open} of what it has enqueued ${open === 1 ? 'is' : 'are'} still to be delivered`
  if (status === 'completed') return `is completed${goesOn}`
  if (status === 'cancelled') {
    return `was cancelled, by its owner or with its subscription, when ${enqueued} of ${matched} were enqueued${goesOn}`
  }
  return `is ${status}: ${paceOf(replay)}`
}

/** Why it goes no faster. */
function paceOf(replay: Replay): string {
  const { subscriptionStatus, disabledReason, failures, waiting, jobs, owners } = replay
  if (subscriptionStatus === null) return 'it is about to be cancelled, since its subscription was deleted'
  if (subscriptionStatus === 'disabled') {
    return `it is about to be cancelled, since its subscription is disabled: ${disabledSince(disabledReason)}`
  }
  if (subscriptionStatus === 'paused' && disabledReason === null) return 'its owner has paused its subscription'
  if (subscriptionStatus === 'paused') return `its subscription ${pausedItself(failures)}`
  const rest = restOf(replay)
  if (rest !== null) return rest
  const share = shareOf(owners, jobs)
  const others = othersOf(replay)
  return waiting < share
    ? `it goes on, at most ${share} at a time${others}`
    : `it goes as fast as its endpoint answers: ${waiting} wait for their first attempt, the most that it may have waiting${others}`
}

/** Whom it shares what may wait with. */
function othersOf({ jobs, owners }: Replay): string {
  const own = jobs > 1 ? `, with ${jobs} replays of its organization under way` : ''
  return owners > 1 ? `${own}, while ${owners} organizations have replays under way` : own
}
