import type { Handler } from '@app/shared/api/contract.ts'
import {
  type explainDelivery as one,
  type explainEvents as many,
  type Moment,
  momentAt,
  standing,
} from '@app/shared/contracts/explain.ts'
import type { Fragment, Sql } from '@app/shared/database/database.ts'
import { timeOf } from '@app/shared/values/ids.ts'
import { notFound } from '@app/shared/api/problem.ts'
import type { App } from '../app.ts'
import { mostTries } from '../attempts/schedule.ts'
import { type Attempt, attemptColumns, momentOf } from './attempt-moments.ts'
import { fanOutConsumers } from '../fan-out/comes-in-order.ts'
import { explainUndelivered } from './explain-undelivered.ts'
import { deliveryColumns, type DeliveryRow, isBrokenOff, lastAttempt, openOrDead } from '../deliveries/deliveries.ts'
import { disabledSince, pausedItself, restOf } from './words.ts'

export const explainDelivery: Handler<App, typeof one> = async ({ sql }, { body: { id } }) => {
  const history = await historyOf(sql, sql`d.id = ${id}`)
  if (history.length === 0) throw notFound()
  return { history }
}

export const explainEvents: Handler<App, typeof many> = async ({ sql }, { body }) => {
  const { organization_id: organizationId, event_ids: eventIds, told = [] } = body
  const organizations =
    organizationId === undefined
      ? sql`(select distinct organization_id from delivered_types)`
      : sql`(${organizationId})`
  const those = sql`d.organization_id in ${organizations} and d.event_id = any(${eventIds}::text[])`
  const waiting = await sql<Waiting[]>`
    select d.head ->> 'type' as type, d.since, d.event_id, f.last_error from event_backlog d
    left join dead_events f on f.consumer = any(${fanOutConsumers}::text[]) and f.event_id = d.organization_id || ':' || d.event_id
    where d.event_id = any(${eventIds}::text[])
      ${organizationId === undefined ? sql`` : sql`and d.organization_id = ${organizationId}`} order by d.seq
  `
  const undelivered = organizationId === undefined ? [] : await explainUndelivered(sql, organizationId, told)
  return { history: [...waiting.map(waitsForItsTurn), ...(await historyOf(sql, those)), ...undelivered] }
}

interface Waiting {
  type: string
  since: Date
  eventId: string
  /** Null for one that was not tried in vain. */
  lastError: string | null
}

const waitsForItsTurn = ({ type, since, eventId, lastError }: Waiting): Moment =>
  momentAt(
    since,
    lastError === null
      ? `${type} waits: the organization has used up its share of the fan-out, or an event before it fails`
      : `${type} waits: it could not be fanned out, and is tried again`,
    { event_id: eventId, ...(lastError !== null && { last_error: lastError }) },
  )

interface Standing extends DeliveryRow {
  url: string | null
  subscriptionStatus: string | null
  /** Why it is not active; null: its owner has paused it. */
  disabledReason: string | null
  pausedAt: Date | null
  disabledAt: Date | null
  diedAt: Date | null
  dueAt: Date | null
  begunAt: Date | null
  /** Begun, and nobody is at it: its process died. */
  isBrokenOff: boolean
  /** Places of the retry schedule that are used up. */
  tries: number
  /** The first open delivery of its line, when that is another one. */
  behind: string | null
  laneDueAt: Date | null
  pacedUntil: Date | null
  /** Of its endpoint, in a row. */
  failures: number | null
}

async function historyOf(sql: Sql, only: Fragment): Promise<Moment[]> {
  const deliveries = await sql<Standing[]>`
    select ${deliveryColumns(sql)}, s.url, s.status as subscription_status, s.disabled_reason, s.paused_at,
      s.disabled_at, x.died_at, o.due_at, o.begun_at, ${isBrokenOff(sql)} as is_broken_off, o.tries, l.due_at as lane_due_at,
      nullif(l.paced_until, '-infinity') as paced_until, l.failures, first.id as behind
    from deliveries d ${openOrDead(sql)}
    left join subscriptions s on s.id = d.subscription_id
    left join lanes l on l.id = d.subscription_id
    left join lateral (
      select id, seq from due_deliveries where subscription_id = o.subscription_id and line = o.line order by seq limit 1
    ) first on first.seq < o.seq
    ${lastAttempt(sql)}
    where ${only} order by d.id
  `
  const attempts = await sql<Attempt[]>`
    select ${attemptColumns(sql)} from attempts
    where delivery_id = any(${deliveries.map(({ id }) => id)}::text[]) order by delivery_id, number
  `
  const byDelivery = Map.groupBy(attempts, ({ deliveryId }) => deliveryId)
  return deliveries.flatMap((delivery) => lifeOf(delivery, byDelivery.get(delivery.id) ?? []))
}

function lifeOf(delivery: Standing, attempts: Attempt[]): Moment[] {
  const { id, eventType, eventId, subscriptionId, replayedFrom } = delivery
  const what = replayedFrom === null ? `${eventType} is to be delivered` : `${eventType} is to be delivered again`
  const details = { delivery_id: id, event_id: eventId, subscription_id: subscriptionId, replayed_from: replayedFrom }
  const moments = [...attempts.map(momentOf), ...brokenOff(delivery)]
  return [momentAt(timeOf(id), what, details), ...moments, standingOf(delivery, attempts)]
}

/** As the next attempt will record it. */
const brokenOff = ({ id, begunAt, isBrokenOff, attemptCount }: Standing) =>
  begunAt && isBrokenOff
    ? [momentAt(begunAt, `attempt ${attemptCount} to deliver it: interrupted`, { delivery_id: id })]
    : []

function standingOf(delivery: Standing, attempts: Attempt[]): Moment {
  const { id, status, url, errorCode } = delivery
  const isOpen = status === 'pending' || status === 'failed'
  const what = isOpen ? waitsFor(delivery) : status === 'dead' ? deathOf(delivery, attempts) : `is ${status}`
  return standing(what, {
    delivery_id: id,
    url,
    ...(errorCode !== null && { error_code: errorCode }),
    ...(delivery.diedAt && { died_at: delivery.diedAt }),
    ...(delivery.pausedAt && { paused_at: delivery.pausedAt }),
    ...(delivery.disabledAt && { disabled_at: delivery.disabledAt }),
    ...(isOpen && {
      ...(delivery.behind !== null && { behind: delivery.behind }),
      ...(delivery.nextAttemptAt && goesOn(delivery) && { next_at: delivery.nextAttemptAt }),
      begun_at: delivery.begunAt,
      due_at: delivery.dueAt,
      lane_due_at: delivery.laneDueAt,
      paced_until: delivery.pacedUntil,
    }),
  })
}

/** Why it was given up. */
const deaths: Record<string, string> = {
  subscription_deleted: 'its subscription was deleted',
  subscription_disabled: 'its subscription was disabled',
  expired: 'it waited too long for its endpoint, or behind too many others, or its payload is no longer kept',
  gone: 'its endpoint said that it is gone for good (410)',
}

function deathOf({ errorCode, attemptCount }: Standing, attempts: Attempt[]) {
  const accepted = attempts.find(
    ({ responseStatus }) => responseStatus !== null && Math.floor(responseStatus / 100) === 2,
  )
  if (accepted) return `is dead: that attempt ${accepted.number} was accepted was heard of when it had been replayed`
  const why = errorCode === null ? undefined : deaths[errorCode]
  return `is dead: ${why ?? `attempt ${attemptCount} was its last one, and failed too`}`
}

/** By itself: neither held by its owner, nor about to be given up. */
const goesOn = ({ subscriptionStatus, disabledReason }: Standing) =>
  subscriptionStatus === 'active' || (subscriptionStatus === 'paused' && disabledReason !== null)

function waitsFor(delivery: Standing) {
  const { status, subscriptionStatus, disabledReason, begunAt, isBrokenOff, behind, attemptCount } = delivery
  if (begunAt && !isBrokenOff) return `is being delivered: attempt ${attemptCount}`
  if (subscriptionStatus === null) return 'is about to be given up: its subscription was deleted'
  if (subscriptionStatus === 'disabled') {
    return `is about to be given up: its subscription is disabled, since ${disabledSince(disabledReason)}`
  }
  if (subscriptionStatus === 'paused' && disabledReason === null)
    return 'is held until its subscription is resumed: its owner has paused it'
  if (behind !== null) return `is ${status}, and waits behind ${behind}: a customer’s events go one at a time`
  if (subscriptionStatus === 'paused') return `is ${status}, and its subscription ${pausedItself(delivery.failures)}`
  const rest = restOf(delivery)
  if (rest !== null) return `is ${status}, and ${rest}`
  return status === 'failed' ? `is failed, and is tried again: try ${delivery.tries + 1} of ${mostTries}` : 'is pending'
}
