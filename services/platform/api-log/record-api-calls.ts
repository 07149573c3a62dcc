import type { Handler } from '@app/shared/api/contract.ts'
import type { recordApiCalls as contract } from '@app/shared/contracts/platform.ts'
import type { App } from '../app.ts'

/** What gateways of the version before send while they are replaced. A batch of theirs that comes twice is recorded twice. */
export const recordApiCalls: Handler<App, typeof contract> = async ({ sql }, { body }) => {
  const { count } = await sql`
    insert into api_log (at, organization_id, key_id, request_id, method, path, status, duration_ms, ip)
    select least(greatest(at, now() - interval '1 day'), now() + interval '1 day'),
      organization_id, key_id, request_id, method, path, status, duration_ms, ip
    from json_to_recordset(${JSON.stringify(body.calls)}::text::json) as c(at timestamptz(3), organization_id text,
      key_id text, request_id text, method text, path text, status int, duration_ms real, ip text)
  `
  return { recorded: count }
}
