import { Fatal } from '@app/shared/events/handle-batch.ts'
import type { Delivered, EventHeaders } from '@app/shared/events/events.ts'
import type { Sql, TransactionSql } from '@app/shared/database/database.ts'
import { texts } from '@app/shared/database/texts.ts'
import { firstIdAt } from '@app/shared/values/ids.ts'
import { isSampled } from '@app/shared/service/tracing.ts'
import { holdFirst, lockLines } from '../attempts/lines.ts'
import { arriving } from '../attempts/wake-lane.ts'
import { matching, numberAudiences } from './audiences.ts'
import { idCharacters } from './id-characters.ts'

/** Payloads that one statement may hold; an event has at most 900 KiB. */
export const statementBytes = 8 * 1024 * 1024

/** Events that one statement may hold. */
export const statementEvents = 256

/** An event of the stream, as the statement that fans it out takes it. */
export interface EventRow {
  head: {
    /** That of the stream, which its deliveries do not tell. */
    subject: string
    organization_id: string
    event_id: string
    type: string
    source: NonNullable<EventHeaders['source']>
    phone: string | null
    line: string | null
    /** A subscription that does not get it. */
    except: string | null
    at: string
    /** W3C trace context; null for an event that is not traced. */
    trace: string | null
    /** A delivery's id up to its time. */
    id_time: string
  }
  payload: Uint8Array
}

/** Null for an event without a type: it is internal. */
export function toRow({ subject, headers, payload }: Delivered): EventRow | null {
  const {
    organization,
    event,
    type,
    source = 'svc',
    phone = null,
    line = null,
    except = null,
    at,
    trace = '',
  } = headers
  if (type === undefined) return null
  if (Number.isNaN(Date.parse(at))) throw new Fatal(`an event at no time: ${at}`)
  const id_time = firstIdAt('wbd', new Date(at)).slice(0, -16)
  return {
    head: {
      subject,
      organization_id: organization,
      event_id: event,
      type,
      source,
      phone,
      line,
      except,
      at,
      trace: isSampled(trace) ? trace : null,
      id_time,
    },
    payload,
  }
}

/** The event that a row was made of, but for a trace context that is not followed. */
export const toEvent = ({ head, payload }: EventRow): Delivered => ({
  subject: head.subject,
  headers: {
    organization: head.organization_id,
    event: head.event_id,
    type: head.type,
    source: head.source,
    phone: head.phone ?? undefined,
    line: head.line ?? undefined,
    except: head.except ?? undefined,
    trace: head.trace ?? undefined,
    at: head.at,
  },
  payload,
})

/** How many deliveries were made of the events of an organization and type. */
export interface Made {
  organization_id: string
  type: string
  count: number
}

/**
 * Records events and their deliveries, and makes the lanes due; answers how many deliveries it has made for which organization and type.
 * Subscriptions are matched in the statement that inserts: one that is there when it runs misses nothing. An event in `events` was fanned
 * out in the transaction that put it there, so one that comes again makes nothing. And since the id of a delivery is derived from its
 * event, no delivery of a new event can be there already: to check each would take 10 µs of 30.
 */
export async function recordEvents(sql: Sql, rows: EventRow[]): Promise<Made[]> {
  return rows.some(hasLine) ? sql.begin((tx) => recordWithin(tx, rows)) : insert(sql, rows)
}

/** The same, in the caller's transaction. */
export async function recordWithin(tx: TransactionSql, rows: EventRow[]): Promise<Made[]> {
  const numbered = numberAudiences(rows)
  const { events, audiences } = numbered
  // They leave together, in this order: the events behind these wait for each round trip.
  const [, , made] = await Promise.all([
    lockLines(tx, events),
    holdFirst(tx, events, matching(tx, audiences)),
    insert(tx, rows, numbered),
  ])
  return made
}

const hasLine = ({ head: { line } }: EventRow) => line !== null

/** The outbox holds text, so these bytes are UTF-8, and come back as they are. */
const textOf = ({ payload }: EventRow): string =>
  Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength).toString('utf8')

/** Payloads as `p`, with their places from 1 as `n`. */
export const payloadsOf = (sql: Sql | TransactionSql, rows: EventRow[]) => sql`
  unnest(${texts(sql, rows.map(textOf))}) with ordinality p(payload, n)
`

async function insert(sql: Sql | TransactionSql, rows: EventRow[], numbered = numberAudiences(rows)): Promise<Made[]> {
  const { events, audiences } = numbered
  const made = await sql<{ organizationId: string; type: string; count: number }[]>`
    with e as materialized (
      select * from json_to_recordset(${JSON.stringify(events)}::text::json)
        as e(n int, k int, organization_id text, event_id text, type text, source text, line text,
          "except" text, at timestamptz, trace text, id_time text)
    ), m as materialized (
      ${matching(sql, audiences)}
    ), x as materialized (
      -- An event that comes again after days is nothing to a younger subscription. Its time is that of another host's
      -- clock, which may be behind; and what was under way when a subscription was made may come to it, or not.
      select e.n, m.subscription_id, m.status, m.is_tried from m join e on e.k = m.k
        and m.created_at <= e.at + interval '5 minutes' and m.subscription_id is distinct from e."except"
    ), fresh as (
      insert into events (at, organization_id, event_id, type, source, payload, trace)
      select at, organization_id, event_id, type, source, payload, trace
      from e join ${payloadsOf(sql, rows)} using (n)
      where n in (select n from x) order by at, organization_id, event_id on conflict do nothing
      returning at, organization_id, event_id
    ), h as materialized (
      select e.id_time, e.n, e.organization_id, e.event_id, e.type, e.line, e.at, x.subscription_id, x.status, x.is_tried,
        sha256(convert_to(x.subscription_id || ' ' || e.event_id, 'UTF8')) as hash
      from x join e using (n)
      -- Said so that it is looked up in a hash: the planner expects two rows, and would compare all with all.
      where ((e.at, e.organization_id, e.event_id) in (select at, organization_id, event_id from fresh)) is true
    ), d as materialized (
      select distinct on (id) * from (
        select id_time || ${idCharacters(sql, 'hash')} as id,
          n, organization_id, event_id, type, line, at, subscription_id, status, is_tried
        from h
      ) d order by id, n
    ), types as (
      insert into delivered_types (organization_id, event_type)
      select distinct organization_id, type from d order by 1, 2 on conflict do nothing
    ), recorded as (
      insert into deliveries (id, organization_id, subscription_id, event_type, event_id)
      select id, organization_id, subscription_id, type, event_id from d order by id
    ), due as (
      insert into due_deliveries (id, organization_id, subscription_id, event_at, event_id, event_type, line, due_at)
      select id, organization_id, subscription_id, at, event_id, type, line,
        case when line is null then now() when n > min(n) over (partition by subscription_id, line) then null
          when exists (select from due_deliveries o where o.subscription_id = d.subscription_id and o.line = d.line) then null
          else now() end
      from d where status <> 'disabled' order by n, id
    ), dead as (
      insert into dead_deliveries (id, organization_id, subscription_id, event_type, error_code)
      select id, organization_id, subscription_id, type, 'subscription_disabled' from d where status = 'disabled'
    ), woken as (
      insert into lanes as l (id, grp, due_at, arrivals)
      select subscription_id, min(organization_id), min(case when is_tried then now() end), 1
      from d where status <> 'disabled' group by 1 order by 1
      ${arriving(sql)}
    )
    select organization_id, type, count(*)::int as count from d group by 1, 2
  `
  return made.map(({ organizationId, type, count }) => ({ organization_id: organizationId, type, count }))
}
