import { batched } from '@app/shared/work/batched.ts'
import type { Handler } from '@app/shared/api/contract.ts'
import type { acceptCallback as contract } from '@app/shared/contracts/messaging.ts'
import { Problem } from '@app/shared/api/problem.ts'
import type { Sql } from '@app/shared/database/database.ts'
import { texts } from '@app/shared/database/texts.ts'
import type { App } from '../app.ts'
import { type CallbackItem, type Split, splitCallback } from './split.ts'

export const acceptCallback: Handler<App, typeof contract> = async (app, { body }, { deadline }) => {
  await keepCallback(app, body, deadline)
  return { accepted: true }
}

/**
 * Keeps a callback's bytes, and its parts in the lanes of their numbers, in one statement; the platform is answered after the commit. One
 * that has waited until nobody waits for the answer is not kept: the platform sends it again.
 */
export async function keepCallback(app: App, body: Uint8Array, deadline: number): Promise<void> {
  const isKept = await app.acceptCallback({ body, split: splitCallback(body), deadline })
  if (!isKept) throw new Problem('service_unavailable', { message: 'The callback came too late.' })
  app.meters.callbacks.inc()
  app.callbacks.wake()
}

interface Acceptable {
  body: Uint8Array
  split: Split
  /** performance.now of the moment after which nobody waits for the answer. */
  deadline: number
}

/** A callback whose parts go into their lanes; one with an `id` is kept already, since `receivedAt`. */
interface Splitted {
  id: string | null
  receivedAt?: Date
  body: Uint8Array
  split: Split
}

/** What one statement takes well within its time, unless it is a single callback: one that may take longer, or fail, goes alone. */
export const statementSize = { rows: 128, bytes: 256 * 1024 }

/** Answers whether it was kept. */
export function createAcceptCallback(sql: Sql) {
  return batched<Acceptable, boolean>((callbacks) => insertThoseInTime(sql, callbacks), {
    // A second one would wait for the first, which has the lanes of the same numbers.
    inFlight: 1,
    ...statementSize,
    sizeOf: ({ body }) => body.length,
    ownerOf: businessOf,
  })
}

/** When more comes than Postgres takes, what it takes is what somebody waits for. */
async function insertThoseInTime(sql: Sql, callbacks: Acceptable[]): Promise<boolean[]> {
  const now = performance.now()
  const isInTime = callbacks.map(({ deadline }) => deadline > now)
  const inTime = callbacks.filter((_, n) => isInTime[n])
  if (inTime.length > 0) await insertCallbacks(sql, inTime.map(asNew))
  return isInTime
}

/** Whose a callback is, as far as it tells: the platform makes one for each business account. */
const businessOf = ({ split: { items } }: Acceptable) => items[0]?.entryId ?? ''

const asNew = ({ body, split }: Acceptable) => ({ body, split, id: null })

/** Keeps callbacks that are new, and puts the parts of all into their lanes. What is counted is counted once. */
export async function insertCallbacks(sql: Sql, callbacks: Splitted[]): Promise<void> {
  const rows = callbacks.map(({ id, receivedAt, split }, n) => ({
    n: n + 1,
    id,
    received_at: receivedAt?.toISOString(),
    fault: split.fault,
  }))
  const bodies = callbacks.map(({ body }) => Buffer.from(body).toString('base64'))
  const allItems = callbacks
    .flatMap(({ split }, n) => split.items.map((item) => itemRow(n + 1, item)))
    .map((item, k) => ({ ...item, k }))
  const items = allItems.filter((item) => item.phone_number_id !== null)
  const accountItems = allItems.filter((item) => item.phone_number_id === null)
  const others = callbacks.flatMap(({ id, split }) => (id === null ? split.others : []))
  await sql`
    with c as (
      select n, decode(coalesce(body, ''), 'base64') as body, fault, coalesce(id, nextval('callbacks_id')) as id, id is null as is_new,
        coalesce(received_at, now()) as received_at
      from json_to_recordset(${JSON.stringify(rows)}::text::json)
        as c(n int, id bigint, received_at timestamptz, fault text)
      left join unnest(${texts(sql, bodies)}) with ordinality b(body, n) using (n)
    ), kept as (
      insert into callbacks (id, body, fault) select id, body, fault from c where is_new
    ), i as (
      select i.k, i.kind, i.item, i.phone_number_id as lane, c.id as callback_id, c.is_new, c.received_at, s.organization_id, i.item -> 'part' ->> 'field' as field
      from json_to_recordset(${JSON.stringify(items)}::text::json) as i(n int, k int, kind text, phone_number_id text, item jsonb)
      join c using (n)
      left join senders s on s.phone_number_id = i.phone_number_id and s.attached and s.owned_since <= c.received_at
      ${accountItems.length === 0 ? sql`` : ofAccounts(sql, accountItems)}
    ), waiting as (
      -- Of a callback that is worked through again too it is the time when it came: what it tells may be over since.
      insert into callback_items (callback_id, lane, kind, item, received_at)
      select callback_id, lane, kind, item, received_at from i where organization_id is not null order by k
    ), due as (
      insert into callback_lanes as l (id, grp, due_at, arrivals)
      select lane, min(organization_id), now(), 1 from i where organization_id is not null group by 1 order by 1
      on conflict (id) do update set due_at = least(l.due_at, excluded.due_at), arrivals = l.arrivals + 1, grp = excluded.grp
    ), others as (
      select field, reason from json_to_recordset(${JSON.stringify(others)}::text::json) as o(field text, reason text)
      union all select coalesce(field, 'messages'), 'unknown_number' from i where organization_id is null and is_new
    )
    insert into unhandled_changes as u (field, reason, count)
    select left(field, 100), reason, count(*) from others group by 1, 2 order by 1, 2
    on conflict (day, field, reason) do update set count = u.count + excluded.count
  `
}

type ItemRow = ReturnType<typeof itemRow> & { k: number }

/** Changes of a whole business account: one for each organization that has numbers of it, in a lane of its own. */
const ofAccounts = (sql: Sql, items: ItemRow[]) => sql`
  union all
  select a.k, a.kind, a.item, s.organization_id || ':' || (a.item ->> 'entryId'), c.id, c.is_new, c.received_at, s.organization_id, a.item -> 'part' ->> 'field'
  from json_to_recordset(${JSON.stringify(items)}::text::json) as a(n int, k int, kind text, item jsonb)
  join c using (n)
  left join lateral (
    select distinct organization_id from senders where business_account_id = a.item ->> 'entryId' and attached and owned_since <= c.received_at
  ) s on true
`

const itemRow = (n: number, { kind, phoneNumberId, ...item }: CallbackItem) => ({
  n,
  kind,
  phone_number_id: phoneNumberId,
  item,
})
