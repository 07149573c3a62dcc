import type { Handler } from '@app/shared/api/contract.ts'
import { notFound } from '@app/shared/api/problem.ts'
import { type explainSubscription as contract, type Moment, momentAt, standing } from '@app/shared/contracts/explain.ts'
import type { Sql } from '@app/shared/database/database.ts'
import { timeOf } from '@app/shared/values/ids.ts'
import type { App } from '../app.ts'
import { firstOpenAt, keepOpenDays } from '../attempts/give-up.ts'
import { failingHours } from '../subscriptions/disable-webhook-subscription.ts'
import { type Attempt, attemptColumns, momentOf } from './attempt-moments.ts'
import { disabledSince, pausedItself, restOf } from './words.ts'

export const explainSubscription: Handler<App, typeof contract> = async ({ sql }, { body: { id } }) => {
  const [subscription, waiting] = await Promise.all([find(sql, id), waitingOf(sql, id)])
  const failures = await lastFailures(sql, id)
  if (!subscription) return { history: [...failures, ...(await deletionOf(sql, id, waiting))] }
  return { history: [...pastOf(subscription), ...failures, standingOf(subscription, waiting)] }
}

interface Subscription {
  organizationId: string
  url: string
  events: string[]
  phoneNumberIds: string[] | null
  subscriptionStatus: 'active' | 'paused' | 'disabled'
  /** Null and not active: its owner has paused it. */
  disabledReason: string | null
  createdAt: Date
  updatedAt: Date
  pausedAt: Date | null
  disabledAt: Date | null
  failures: number
  failingSince: Date | null
  pacedUntil: Date | null
}

async function find(sql: Sql, id: string) {
  const [found] = await sql<Subscription[]>`
    select s.organization_id, s.url, s.events, s.phone_number_ids, s.status as subscription_status, s.disabled_reason,
      s.created_at, s.updated_at, s.paused_at, s.disabled_at, coalesce(l.failures, 0) as failures,
      case when l.failures > 0 then l.failing_since end as failing_since,
      nullif(l.paced_until, '-infinity') as paced_until
    from subscriptions s left join lanes l on l.id = s.id where s.id = ${id}
  `
  return found
}

interface Waiting {
  pending: number
  failed: number
  inCall: number
  nextAt: Date | null
}

async function waitingOf(sql: Sql, id: string) {
  const [waiting] = await sql<[Waiting]>`
    select count(*) filter (where not tried)::int as pending, count(*) filter (where tried)::int as failed,
      count(begun_at)::int as in_call, min(due_at) filter (where begun_at is null) as next_at
    from due_deliveries where subscription_id = ${id}
  `
  return waiting
}

const shownFailures = 5

/** Of what is tried again, and of what was given up. */
async function lastFailures(sql: Sql, id: string): Promise<Moment[]> {
  const attempts = await sql<Attempt[]>`
    select ${attemptColumns(sql)} from (
      (select id from due_deliveries where subscription_id = ${id} and tried order by id desc limit ${shownFailures})
      union all
      (select id from dead_deliveries where subscription_id = ${id} order by id collate "POSIX" desc limit ${shownFailures})
    ) d
    cross join lateral (select * from attempts where delivery_id = d.id order by number desc limit 1) a
    order by started_at desc limit ${shownFailures}
  `
  return attempts.map(momentOf)
}

function pastOf(subscription: Subscription): Moment[] {
  const { organizationId, url, events, phoneNumberIds, createdAt, updatedAt } = subscription
  const { failures, failingSince, pausedAt, disabledAt, disabledReason } = subscription
  const about = { organization_id: organizationId, url, events, phone_number_ids: phoneNumberIds }
  return [
    momentAt(createdAt, 'was created', about),
    ...(failingSince ? [momentAt(failingSince, `its endpoint failed, as in all ${failures} attempts since`)] : []),
    ...(pausedAt
      ? [momentAt(pausedAt, 'paused itself, or has another URL since: its endpoint had failed for too long')]
      : []),
    ...(disabledAt ? [momentAt(disabledAt, `was disabled, since ${disabledSince(disabledReason)}`)] : []),
    ...(updatedAt > createdAt ? [momentAt(updatedAt, 'was changed last, by its owner or by its state')] : []),
  ]
}

const hourMs = 60 * 60 * 1000

function standingOf(subscription: Subscription, waiting: Waiting): Moment {
  const { subscriptionStatus: status, disabledReason, failures, pausedAt } = subscription
  const willDisable = pausedAt && new Date(pausedAt.getTime() + failingHours * hourMs)
  const nextAt = nextOf(subscription, waiting)
  return standing(wordsOf(subscription, waiting), {
    status,
    disabled_reason: disabledReason,
    consecutive_failures: failures,
    pending: waiting.pending,
    failed: waiting.failed,
    being_delivered: waiting.inCall,
    ...(nextAt && { next_at: nextAt }),
    ...(willDisable && { disabled_at_the_latest: willDisable }),
  })
}

/** When something is delivered next, unless something comes sooner. */
function nextOf({ subscriptionStatus, disabledReason, pacedUntil }: Subscription, { nextAt }: Waiting): Date | null {
  if (subscriptionStatus === 'disabled' || (subscriptionStatus === 'paused' && disabledReason === null)) return null
  return nextAt && pacedUntil && pacedUntil > nextAt ? pacedUntil : nextAt
}

function wordsOf(subscription: Subscription, waiting: Waiting) {
  const { subscriptionStatus: status, disabledReason, failures } = subscription
  const open = waiting.pending + waiting.failed
  const waits = open === 0 ? 'nothing waits' : open === 1 ? '1 delivery waits' : `${open} deliveries wait`
  if (status === 'disabled') {
    const left = open === 0 ? waits : `${waits}, to be given up`
    return `is disabled, since ${disabledSince(disabledReason)}: it gets no events until its organization enables it; ${left}`
  }
  if (status === 'paused' && disabledReason === null) {
    return `is paused by its owner: ${waits} until it is resumed, for ${keepOpenDays} days at most`
  }
  if (status === 'paused') {
    return `${pausedItself(failures)}: ${waits}, the first success resumes it, and ${failingHours} hours without one disable it`
  }
  const rest = restOf(subscription)
  return rest === null ? `is active: ${waits}` : `is active, and ${rest}: ${waits}`
}

/** Before it is nothing that was open when the subscription was deleted: what it had given up in months is not read. */
async function oldestOpen(sql: Sql, subscriptionId: string) {
  const [newest] = await sql<{ id: string | null }[]>`
    select max(id collate "POSIX") as id from dead_deliveries where subscription_id = ${subscriptionId}
  `
  if (!newest?.id) return ''
  // The sweep of what waited too long comes every hour.
  return firstOpenAt(timeOf(newest.id).getTime() - hourMs)
}

/** Of one that is there no more, by what its deliveries tell. */
async function deletionOf(sql: Sql, id: string, waiting: Waiting): Promise<Moment[]> {
  const oldest = await oldestOpen(sql, id)
  const [known] = await sql<[{ organizationId: string | null; givenUp: number; deletedAt: Date | null }]>`
    select (
      select d.organization_id from (select distinct event_type from delivered_types) t
      cross join lateral (
        select organization_id from deliveries where subscription_id = ${id} and event_type = t.event_type limit 1
      ) d limit 1
    ) as organization_id, count(*)::int as given_up, min(died_at) as deleted_at
    from dead_deliveries where subscription_id = ${id} and error_code = 'subscription_deleted'
      and id collate "POSIX" >= ${oldest}
  `
  const { organizationId, givenUp, deletedAt } = known
  if (organizationId === null) throw notFound()
  const open = waiting.pending + waiting.failed
  return [
    ...(deletedAt ? [momentAt(deletedAt, 'was deleted by its owner: what waited for it is given up')] : []),
    standing(
      deletedAt
        ? 'is there no more: it was deleted'
        : 'is there no more: it was deleted while nothing waited for it, so that the records do not know when',
      { organization_id: organizationId, given_up: givenUp, about_to_be_given_up: open },
    ),
  ]
}
