import type { WebhookDelivery } from '@app/shared/contracts/webhook-deliveries.ts'
import type { Sql } from '@app/shared/database/database.ts'
import { timeOf } from '@app/shared/values/ids.ts'
import { notInCall } from '../attempts/in-call.ts'
import { interruption } from '../attempts/interrupted.ts'
import type { z } from 'zod'

export interface DeliveryRow {
  id: string
  subscriptionId: string
  eventType: string
  eventId: string
  replayedFrom: string | null
  status: 'pending' | 'succeeded' | 'failed' | 'dead'
  attemptCount: number
  lastAttemptAt: Date | null
  nextAttemptAt: Date | null
  responseStatus: number | null
  responseBodySnippet: string | null
  durationMs: number | null
  errorCode: string | null
  errorMessage: string | null
}

/** The columns of a DeliveryRow, from `deliveries d`, `due_deliveries o`, `dead_deliveries x` and its last attempt `a`. */
export const deliveryColumns = (sql: Sql) => sql`
  d.id, d.subscription_id, d.event_type, d.event_id, d.replayed_from,
  case when o.tried then 'failed' when o.id is not null then 'pending' when x.id is not null then 'dead'
    else 'succeeded' end as status,
  coalesce(o.attempts, a.number, 0) as attempt_count, coalesce(o.begun_at, a.started_at) as last_attempt_at,
  case when o.tried then greatest(o.due_at, (select paced_until from lanes where lanes.id = d.subscription_id))
    end as next_attempt_at,
  a.response_status, a.response_body_snippet, a.duration_ms,
  coalesce(x.error_code, case when ${isBrokenOff(sql)} then 'interrupted' else a.error_code end) as error_code,
  case when x.error_code is null or x.error_code = a.error_code then a.error_message end as error_message
`

/** Of an open delivery `o`: begun, and nobody is at it, since its process died. The next attempt will record that one. */
export const isBrokenOff = (sql: Sql) => sql`(o.begun_at is not null and ${notInCall(sql, sql`o.`)})`

/**
 * Where `deliveries d` are open or given up: one look-up for each. Joined, all that is open is read for each delivery of a page while
 * the planner believes what it saw last: a queue that was empty.
 */
export const openOrDead = (sql: Sql) => sql`
  left join lateral (select * from due_deliveries where id = d.id limit 1) o on true
  left join lateral (select * from dead_deliveries where id = d.id limit 1) x on true
`

/**
 * The last attempt, looked up in the partition of its delivery; `limit` keeps it a look-up for each. There is none while the last one is
 * broken off. A delivery that succeeded did so in the last attempt that was accepted: it may have been tried again before that was known.
 */
export const lastAttempt = (sql: Sql) => sql`
  left join lateral (
    select * from attempts where delivery_id = d.id and ${isBrokenOff(sql)} is not true
      and (o.id is not null or x.id is not null or response_status between 200 and 299)
    order by number desc limit 1
  ) a on true
`

export const toDelivery = (row: DeliveryRow): z.input<typeof WebhookDelivery> => ({
  id: row.id,
  object: 'webhook_delivery',
  subscription_id: row.subscriptionId,
  event_type: row.eventType,
  event_id: row.eventId,
  status: row.status,
  attempt_count: row.attemptCount,
  last_attempt_at: row.lastAttemptAt?.toISOString() ?? null,
  next_attempt_at: row.nextAttemptAt?.toISOString() ?? null,
  response_status: row.responseStatus,
  response_body_snippet: row.responseBodySnippet,
  duration_ms: row.durationMs,
  replayed_from: row.replayedFrom,
  error_code: row.errorCode,
  error_message: row.errorMessage ?? messages[row.errorCode ?? ''] ?? null,
  created_at: timeOf(row.id).toISOString(),
})

/** For errors that no attempt has a message for. */
const messages: Record<string, string> = {
  interrupted: interruption,
  subscription_deleted: 'The subscription was deleted.',
  subscription_disabled: 'The subscription is disabled.',
  expired: 'It waited too long for its endpoint.',
}
