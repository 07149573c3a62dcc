import type { Handler } from '@app/shared/api/contract.ts'
import type { findRequestedMessages as contract } from '@app/shared/contracts/explain.ts'
import { firstIdAt } from '@app/shared/values/ids.ts'
import type { App } from '../app.ts'

/** A message is made while its request runs, which may take 25 s; the time is that of the request's beginning, by another clock. */
const beforeMs = 60_000
const afterMs = 60_000

export const findRequestedMessages: Handler<App, typeof contract> = async ({ sql }, { body }) => {
  const at = Date.parse(body.at)
  const organizationId = body.organization_id ?? null
  const rows = await sql<{ id: string }[]>`
    select m.id from (
      select organization_id, phone_number_id from senders
      where ${organizationId}::text is null or organization_id = ${organizationId}
    ) s
    cross join lateral (
      select id from messages
      where organization_id = s.organization_id and phone_number_id = s.phone_number_id
        and id >= ${firstIdAt('msg', new Date(at - beforeMs))} and id < ${firstIdAt('msg', new Date(at + afterMs))}
        and request_id = ${body.request_id}
    ) m
  `
  return { ids: rows.map(({ id }) => id) }
}
