import type { Delivered } from '@app/shared/consume.ts'
import type { Sql, TransactionSql } from '@app/shared/database.ts'
import { firstIdAt } from '@app/shared/ids.ts'
import { lockLines } from '../attempts/lines.ts'

/** An event of the stream, as a row of the statement that fans it out. */
export interface EventRow {
  organization_id: string
  event_id: string
  type: string
  source: string
  phone: string | null
  line: string | null
  at: string
  /** A delivery's id up to its time. */
  id_time: string
  payload: string
}

/** Null for an event without a type: it is internal. */
export function toRow({ headers, payload }: Delivered): EventRow | null {
  const { organization, event, type, source = 'svc', phone = null, line = null, at } = headers
  if (type === undefined) return null
  return {
    organization_id: organization,
    event_id: event,
    type,
    source,
    phone,
    line,
    at,
    id_time: firstIdAt('wbd', new Date(at)).slice(0, -16),
    // The outbox holds text, so these bytes are UTF-8, and come back as they are.
    payload: Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength).toString('utf8'),
  }
}

/**
 * Records events and their deliveries, and makes the lanes due; answers how many deliveries it made. Matched in the
 * statement that inserts: a subscription that is there when it runs misses nothing. What stands in `events` was fanned
 * out in the transaction that put it there, so an event that comes again makes nothing.
 */
export async function recordEvents(sql: Sql, rows: EventRow[]): Promise<number> {
  if (rows.every(({ line }) => line === null)) return insert(sql, rows)
  return sql.begin(async (tx) => {
    await lockLines(tx, rows)
    return insert(tx, rows)
  })
}

async function insert(sql: Sql | TransactionSql, rows: EventRow[]): Promise<number> {
  const [made] = await sql<{ count: number }[]>`
    with e as materialized (
      select * from json_to_recordset(${JSON.stringify(rows.map((row, n) => ({ n, ...row })))}::text::json)
        as e(n int, organization_id text, event_id text, type text, source text, phone text, line text, at timestamptz,
          id_time text, payload text)
    ), m as materialized (
      select e.n, s.id as subscription_id, s.status from e join subscriptions s
        on s.organization_id = e.organization_id and e.type = any(s.events)
        and (s.status <> 'disabled' or s.disabled_at > now() - interval '30 days')
        and (e.phone is null or s.phone_number_ids is null or s.phone_number_ids = '{}' or e.phone = any(s.phone_number_ids))
        -- An event that comes again after days is nothing to a younger subscription. The clocks of two hosts differ.
        and s.created_at <= e.at + interval '200 ms'
    ), fresh as (
      insert into events (at, organization_id, event_id, type, source, payload)
      select at, organization_id, event_id, type, source, payload from e where n in (select n from m)
      order by at, organization_id, event_id on conflict do nothing
      returning at, organization_id, event_id
    ), d as materialized (
      select distinct on (id) * from (
        select e.id_time || id_characters(sha256(convert_to(m.subscription_id || ' ' || e.event_id, 'UTF8'))) as id,
          e.n, e.organization_id, e.event_id, e.type, e.line, e.at, m.subscription_id, m.status
        from m join e using (n)
        -- Said so that it is looked up in a hash: the planner expects two rows, and would compare all with all.
        where ((e.at, e.organization_id, e.event_id) in (select at, organization_id, event_id from fresh)) is true
      ) d order by id, n
    ), recorded as (
      insert into deliveries (id, organization_id, subscription_id, event_type, event_id)
      select id, organization_id, subscription_id, type, event_id from d order by id on conflict (id) do nothing
    ), due as (
      insert into due_deliveries (id, organization_id, subscription_id, event_at, event_id, line, due_at)
      select id, organization_id, subscription_id, at, event_id, line,
        case when line is null then now() when n > min(n) over (partition by subscription_id, line) then null
          when exists (select from due_deliveries o where o.subscription_id = d.subscription_id and o.line = d.line) then null
          else now() end
      from d where status <> 'disabled' order by n, id on conflict (id) do nothing
    ), dead as (
      insert into dead_deliveries (id, organization_id, subscription_id, error_code)
      select id, organization_id, subscription_id, 'subscription_disabled' from d where status = 'disabled'
      on conflict (id) do nothing
    ), woken as (
      insert into lanes as l (id, grp, due_at, arrivals)
      select subscription_id, min(organization_id), min(case when status = 'active' then now() end), 1
      from d where status <> 'disabled' group by 1 order by 1
      on conflict (id) do update set arrivals = l.arrivals + 1, due_at = case
        when excluded.due_at is null then l.due_at else greatest(least(l.due_at, excluded.due_at), l.paced_until) end
    )
    select count(*)::int as count from d
  `
  return made?.count ?? 0
}
