import type { Handler, Input } from '@app/shared/api/contract.ts'
import type { recordCalls as contract } from '@app/shared/contracts/platform.ts'
import type { Sql } from '@app/shared/database/database.ts'
import type { Partitions } from '@app/shared/database/partitions.ts'
import type { App } from '../app.ts'

/** Public API, section 5: retained 30 days. By Postgres's clock, so that a gateway whose clock is far off fills no days without a partition. */
export const apiCalls: Partitions = { table: 'api_calls', by: 'time', keepDays: 30 }

export type Calls = Input<typeof contract>['body']

export const recordCalls: Handler<App, typeof contract> = async ({ sql }, { body }) => ({
  recorded: await keepCalls(sql, body),
})

/** A batch that comes twice is kept once: false then. */
export async function keepCalls(sql: Sql, body: Calls): Promise<boolean> {
  const { batch, first_request: first, last_request: last, began, callers, calls } = body
  const organizations = callers.map((one) => one.organization_id ?? '')
  const keys = callers.map((one) => one.key_id ?? '')
  const { count } = await sql`
    with fresh as (
      insert into api_log_batches (id) values (${batch}) on conflict do nothing returning id
    )
    insert into api_calls (first_request, last_request, began, organization_ids, key_ids, ips, calls)
    select ${first}, ${last}, ${began}::timestamptz, ${organizations}::text[], ${keys}::text[],
      ${callers.map((one) => one.ip)}::text[], ${calls}
    from fresh
  `
  return count > 0
}

/** A gateway repeats a batch for as long as it runs, each second: one that is a day old will not come again. */
export async function sweepBatches(sql: Sql): Promise<number> {
  const { count } = await sql`
    delete from api_log_batches where id in (
      select id from api_log_batches where recorded_at < now() - interval '1 day' limit 5000
    )
  `
  return count
}
