import type { Handler } from '@app/shared/contract.ts'
import type { recordApiCalls as contract } from '@app/shared/contracts/platform.ts'
import type { DailyPartitions } from '@app/shared/partitions.ts'
import type { App } from '../app.ts'

/** Public API, section 5: retained 30 days. */
export const apiLog: DailyPartitions = { table: 'api_log', by: 'time', keepDays: 30 }

/** A batch that comes twice is recorded once. */
export const recordApiCalls: Handler<App, typeof contract> = async ({ sql }, { body }) => {
  // A gateway whose clock is far off must not fill days that have no partition.
  const { count } = await sql`
    insert into api_log (at, organization_id, key_id, request_id, method, path, status, duration_ms, ip)
    select least(greatest(at, now() - interval '1 day'), now() + interval '1 day'),
      organization_id, key_id, request_id, method, path, status, duration_ms, ip
    from json_to_recordset(${JSON.stringify(body.calls)}::text::json) as c(at timestamptz(3), organization_id text,
      key_id text, request_id text, method text, path text, status int, duration_ms real, ip text)
    on conflict do nothing
  `
  return { recorded: count }
}
