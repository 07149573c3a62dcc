import type { Handler } from '@app/shared/api/contract.ts'
import type { findRequestedMessages as contract } from '@app/shared/contracts/explain.ts'
import { firstIdAt } from '@app/shared/values/ids.ts'
import type { App } from '../app.ts'

/** A message is made while its request runs; the log's time is the request's end. */
const beforeMs = 60_000
const afterMs = 5_000

export const findRequestedMessages: Handler<App, typeof contract> = async ({ sql }, { body }) => {
  const at = Date.parse(body.at)
  const rows = await sql<{ id: string }[]>`
    select m.id from (select phone_number_id from senders where organization_id = ${body.organization_id}) s
    cross join lateral (
      select id from messages
      where organization_id = ${body.organization_id} and phone_number_id = s.phone_number_id
        and id >= ${firstIdAt('msg', new Date(at - beforeMs))} and id < ${firstIdAt('msg', new Date(at + afterMs))}
        and request_id = ${body.request_id}
    ) m
  `
  return { ids: rows.map(({ id }) => id) }
}
