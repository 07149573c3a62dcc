import { batched } from '@app/shared/batched.ts'
import type { Handler } from '@app/shared/contract.ts'
import type { acceptCallback as contract } from '@app/shared/contracts/messaging.ts'
import type { Sql } from '@app/shared/database.ts'
import type { App } from '../app.ts'
import { type CallbackItem, type Split, splitCallback } from './split.ts'

/** Keeps a callback's bytes, and its parts in the lanes of their numbers, in one statement; the platform is answered after the commit. */
export const acceptCallback: Handler<App, typeof contract> = async (app, { body }) => {
  await app.acceptCallback({ body, split: splitCallback(body) })
  app.callbacks.wake()
  return { accepted: true }
}

interface Acceptable {
  body: Uint8Array
  split: Split
}

export function acceptCallbacks(sql: Sql) {
  return batched<Acceptable, void>((callbacks) => insert(sql, callbacks), {
    rows: 64,
    bytes: 4 << 20,
    sizeOf: ({ body }) => body.length,
  })
}

async function insert(sql: Sql, callbacks: Acceptable[]): Promise<void[]> {
  const rows = callbacks.map(({ body, split }, n) => ({
    n,
    body: Buffer.from(body).toString('base64'),
    fault: split.fault,
  }))
  const items = callbacks.flatMap(({ split }, n) => split.items.map((item) => itemRow(n, item)))
  const others = callbacks.flatMap(({ split }) => split.others)
  await sql`
    with c as (
      select n, decode(body, 'base64') as body, fault, nextval('callbacks_id') as id
      from json_to_recordset(${JSON.stringify(rows)}::text::json) as c(n int, body text, fault text)
    ), kept as (
      insert into callbacks (id, body, fault) select id, body, fault from c
    ), i as (
      select i.*, c.id as callback_id, s.organization_id
      from json_to_recordset(${JSON.stringify(items)}::text::json) as i(n int, kind text, phone_number_id text, item jsonb)
      join c using (n) left join senders s on s.phone_number_id = i.phone_number_id and s.attached
    ), waiting as (
      insert into callback_items (callback_id, lane, kind, item)
      select callback_id, phone_number_id, kind, item from i where organization_id is not null
    ), due as (
      insert into callback_lanes as l (id, grp, due_at, arrivals)
      select phone_number_id, min(organization_id), now(), 1 from i where organization_id is not null group by 1 order by 1
      on conflict (id) do update set due_at = least(l.due_at, excluded.due_at), arrivals = l.arrivals + 1, grp = excluded.grp
    ), others as (
      select field, reason from json_to_recordset(${JSON.stringify(others)}::text::json) as o(field text, reason text)
      union all select 'messages', 'unknown_number' from i where organization_id is null
    )
    insert into unhandled_changes as u (field, reason, count)
    select left(field, 100), reason, count(*) from others group by 1, 2 order by 1, 2
    on conflict (day, field, reason) do update set count = u.count + excluded.count
  `
  return callbacks.map(() => undefined)
}

const itemRow = (n: number, { kind, phoneNumberId, ...item }: CallbackItem) => ({
  n,
  kind,
  phone_number_id: phoneNumberId,
  item,
})
