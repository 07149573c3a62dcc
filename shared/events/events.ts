import type { z } from 'zod'
import type { Event } from '../api/contract.ts'
import type { Fragment, Sql, TransactionSql } from '../database/database.ts'
import { texts } from '../database/texts.ts'
import { newId } from '../values/ids.ts'

/** An event over this size is refused in its writer's transaction, not on the bus. */
export const maxEventBytes = 900 * 1024

/** An event that is too large for the bus, and will be however often it is tried. */
export class OversizedEvent extends Error {}

/** What belongs to an event beside its data. */
export interface Origin {
  organizationId: string
  /** The dedupe key (`X-Svc-Event-Id`), unique within the organization; a new `evt_` id unless given. */
  id?: string
  /** The number it is about; events without one pass every subscription's filter. */
  phoneNumberId?: string | undefined
  /** Events of one line are delivered one at a time, in order (those of a customer). */
  line?: string | undefined
  /** How the platform writes the recipient's number, in digits, when that is not the number as given. */
  recipient?: string | undefined
  /** The webhook subscription that it is not delivered to: the one it tells of. */
  exceptSubscription?: string
  traceparent?: string
  /** Time of a native envelope; now unless given. */
  createdAt?: Date
}

/** The headers that an event carries on the stream, beside `Nats-Msg-Id`. */
export interface EventHeaders {
  organization: string
  event: string
  type?: string | undefined
  source?: 'upstream' | 'svc' | undefined
  phone?: string | undefined
  line?: string | undefined
  recipient?: string | undefined
  /** A webhook subscription that does not get it. */
  except?: string | undefined
  trace?: string | undefined
  /** ISO time of the event. */
  at: string
}

/** The id of an event, by which a consumer knows it again. */
export const idOf = ({ organization, event }: Pick<EventHeaders, 'organization' | 'event'>): string =>
  `${organization}:${event}`

/** An event as it came over the stream. */
export interface Delivered {
  subject: string
  headers: EventHeaders
  payload: Uint8Array
}

/** An event, ready for the outbox. */
export interface Recorded {
  id: string
  subject: string
  headers: EventHeaders
  payload: string
}

/** Checks an event against its contract and makes it ready to record. A native webhook event gets its envelope here. */
export function recorded<E extends Event>(contract: E, data: z.input<E['data']>, origin: Origin): Recorded {
  const eventId = origin.id ?? newId('evt')
  const at = (origin.createdAt ?? new Date()).toISOString()
  const parsed = contract.data.parse(data)
  const { webhook } = contract
  const body = webhook?.source === 'svc' ? { id: eventId, type: webhook.type, created_at: at, data: parsed } : parsed
  const payload = JSON.stringify(body)
  if (Buffer.byteLength(payload) > maxEventBytes)
    throw new OversizedEvent(`${contract.subject} ${eventId} is over ${maxEventBytes} bytes`)
  return {
    id: idOf({ organization: origin.organizationId, event: eventId }),
    subject: contract.subject,
    headers: {
      organization: origin.organizationId,
      event: eventId,
      type: webhook?.type,
      source: webhook?.source,
      phone: origin.phoneNumberId,
      line: origin.line,
      recipient: origin.recipient,
      except: origin.exceptSubscription,
      trace: origin.traceparent || undefined,
      at,
    },
    payload,
  }
}

/**
 * Records an event in the outbox, in the same transaction as the change that it reports: both are committed, or neither. Call
 * `relay.wake()` after the commit, else the event waits for the relay's next poll. Throws for data that its contract refuses, and
 * `OversizedEvent` over 900 KiB.
 */
export const emit = <E extends Event>(tx: TransactionSql, contract: E, data: z.input<E['data']>, origin: Origin) =>
  record(tx, [recorded(contract, data, origin)])

/** Records many events, in their order, in one statement. */
export async function record(tx: TransactionSql, events: Recorded[]): Promise<void> {
  if (events.length > 0) await recording(tx, events)
}

/** An event of a statement that finds out itself whether it is true: `given` says of what. */
export interface Conditional extends Recorded {
  given?: string
}

/** Part of a statement: records those of the events, in their order, whose row fulfils the condition. */
export function recording(sql: Sql | TransactionSql, events: Conditional[], condition: Fragment = sql`true`): Fragment {
  const column = (of: (event: Conditional) => string | undefined) => texts(sql, events.map(of))
  return sql`
    insert into outbox (id, subject, headers, payload)
    -- As idOf: an event's id may hold the sign that stands between texts, which its headers escape.
    select (headers ->> 'organization') || ':' || (headers ->> 'event'), subject, headers, convert_to(payload, 'UTF8')
    from (
      select subject, headers::jsonb as headers, payload, given, n
      from unnest(
        ${column(({ subject }) => subject)}, ${column(({ headers }) => JSON.stringify(headers))},
        ${column(({ payload }) => payload)}, ${column(({ given }) => given)}
      ) with ordinality as e(subject, headers, payload, given, n)
      -- So that headers are read once.
      offset 0
    ) e
    where ${condition} order by n
  `
}
