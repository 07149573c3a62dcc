import type { Handler } from '@app/shared/api/contract.ts'
import type { recordCallBatch as contract } from '@app/shared/contracts/platform.ts'
import type { Sql } from '@app/shared/database/database.ts'
import type { DailyPartitions } from '@app/shared/database/partitions.ts'
import type { App } from '../app.ts'

/** Public API, section 5: retained 30 days. */
export const apiLog: DailyPartitions = { table: 'api_log', by: 'time', keepDays: 30 }

/** A batch that comes twice is recorded once. */
export const recordCallBatch: Handler<App, typeof contract> = async ({ sql }, { body }) => {
  const values = (lines: string) => sql`string_to_array(${lines}, chr(10), '')`
  // A gateway whose clock is far off must not fill days that have no partition.
  const { count } = await sql`
    with fresh as (
      insert into api_log_batches (id) values (${body.batch}) on conflict do nothing returning id
    )
    insert into api_log (at, organization_id, key_id, request_id, method, path, status, duration_ms, ip, problem)
    select least(greatest(at, now() - interval '1 day'), now() + interval '1 day'),
      organization_id, key_id, request_id, method, path, status, duration_ms, coalesce(ip, ''), problem
    from fresh, unnest(
      ${values(body.at)}::timestamptz(3)[], ${values(body.organization_id)}, ${values(body.key_id)},
      ${values(body.request_id)}, ${values(body.method)}, ${values(body.path)}, ${values(body.status)}::int[],
      ${values(body.duration_ms)}::real[], ${values(body.ip)}, ${values(body.problem)}
    ) as c(at, organization_id, key_id, request_id, method, path, status, duration_ms, ip, problem)
  `
  return { recorded: count }
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
