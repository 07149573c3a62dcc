import type { Handler } from '@app/shared/api/contract.ts'
import type { explainDelivery as one, explainEvents as many, Moment } from '@app/shared/contracts/explain.ts'
import type { Fragment, Sql } from '@app/shared/database/database.ts'
import { timeOf } from '@app/shared/values/ids.ts'
import { notFound } from '@app/shared/api/problem.ts'
import type { App } from '../app.ts'
import { breakerFailures } from '../attempts/lane-health.ts'
import { deliveryColumns, type DeliveryRow, lastAttempt } from '../deliveries/deliveries.ts'

export const explainDelivery: Handler<App, typeof one> = async ({ sql }, { body: { id } }) => {
  const history = await historyOf(sql, sql`d.id = ${id}`)
  if (history.length === 0) throw notFound()
  return { history }
}

export const explainEvents: Handler<App, typeof many> = async ({ sql }, { body }) => {
  const those = sql`d.organization_id = ${body.organization_id} and d.event_id = any(${body.event_ids}::text[])`
  const waiting = await sql<{ type: string; since: Date; eventId: string }[]>`
    select d.head ->> 'type' as type, d.since, d.event_id from event_backlog d where ${those} order by d.seq
  `
  return { history: [...waiting.map(waitsForItsTurn), ...(await historyOf(sql, those))] }
}

const waitsForItsTurn = ({ type, since, eventId }: { type: string; since: Date; eventId: string }): Moment => ({
  at: since.toISOString(),
  what: `${type} waits: the organization has used up its share of the fan-out`,
  details: { event_id: eventId },
})

interface Standing extends DeliveryRow {
  url: string | null
  subscriptionStatus: string | null
  dueAt: Date | null
  begunAt: Date | null
  /** The first open delivery of its line, when that is another one. */
  behind: string | null
  laneDueAt: Date | null
  pacedUntil: Date | null
  /** Of its endpoint, in a row. */
  failures: number | null
}

async function historyOf(sql: Sql, only: Fragment): Promise<Moment[]> {
  const deliveries = await sql<Standing[]>`
    select ${deliveryColumns(sql)}, s.url, s.status as subscription_status, o.due_at, o.begun_at, l.due_at as lane_due_at,
      nullif(l.paced_until, '-infinity') as paced_until, l.failures, first.id as behind
    from deliveries d
    left join due_deliveries o on o.id = d.id
    left join dead_deliveries x on x.id = d.id
    left join subscriptions s on s.id = d.subscription_id
    left join lanes l on l.id = d.subscription_id
    left join lateral (
      select id, seq from due_deliveries where subscription_id = o.subscription_id and line = o.line order by seq limit 1
    ) first on first.seq < o.seq
    ${lastAttempt(sql)}
    where ${only} order by d.id
  `
  const attempts = await sql<Attempt[]>`
    select delivery_id, number, started_at, duration_ms, response_status, error_code, error_message from attempts
    where delivery_id = any(${deliveries.map(({ id }) => id)}::text[]) order by delivery_id, number
  `
  const byDelivery = Map.groupBy(attempts, ({ deliveryId }) => deliveryId)
  return deliveries.flatMap((delivery) => lifeOf(delivery, byDelivery.get(delivery.id) ?? []))
}

interface Attempt {
  deliveryId: string
  number: number
  startedAt: Date
  durationMs: number | null
  responseStatus: number | null
  errorCode: string | null
  errorMessage: string | null
}

function lifeOf(delivery: Standing, attempts: Attempt[]): Moment[] {
  const { id, eventType, eventId, subscriptionId, replayedFrom } = delivery
  return [
    {
      at: timeOf(id).toISOString(),
      what: replayedFrom === null ? `${eventType} is to be delivered` : `${eventType} is to be delivered again`,
      details: { delivery_id: id, event_id: eventId, subscription_id: subscriptionId, replayed_from: replayedFrom },
    },
    ...attempts.map(momentOf),
    standingOf(delivery),
  ]
}

const momentOf = (attempt: Attempt): Moment => ({
  at: attempt.startedAt.toISOString(),
  what: `attempt ${attempt.number} to deliver it: ${attempt.responseStatus ?? attempt.errorCode ?? 'no outcome'}`,
  details: {
    delivery_id: attempt.deliveryId,
    duration_ms: attempt.durationMs,
    ...(attempt.errorMessage !== null && { error_message: attempt.errorMessage }),
  },
})

function standingOf(delivery: Standing): Moment {
  const { id, status, url, errorCode } = delivery
  const isOpen = status === 'pending' || status === 'failed'
  return {
    at: null,
    what: isOpen ? waitsFor(delivery) : `is ${status}`,
    details: {
      delivery_id: id,
      url,
      ...(errorCode !== null && { error_code: errorCode }),
      ...(isOpen && {
        ...(delivery.behind !== null && { behind: delivery.behind }),
        begun_at: delivery.begunAt,
        due_at: delivery.dueAt,
        lane_due_at: delivery.laneDueAt,
        paced_until: delivery.pacedUntil,
      }),
    },
  }
}

function waitsFor({ status, subscriptionStatus, begunAt, behind, attemptCount, failures, pacedUntil }: Standing) {
  if (begunAt) return `is being delivered: attempt ${attemptCount}`
  if (subscriptionStatus !== 'active') return `is held: its subscription is ${subscriptionStatus ?? 'deleted'}`
  if (behind !== null) return `is ${status}, and waits behind ${behind}: a customer’s events go one at a time`
  if (pacedUntil === null || pacedUntil < new Date()) return `is ${status}`
  return (failures ?? 0) >= breakerFailures
    ? `is ${status}, and its endpoint rests: it has failed ${failures} times in a row`
    : `is ${status}, and its endpoint rests, as it has asked for`
}
