import type { Handler } from '@app/shared/api/contract.ts'
import { type explainQueue as contract, standing } from '@app/shared/contracts/explain.ts'
import type { Sql } from '@app/shared/database/database.ts'
import type { App } from '../app.ts'
import { standingOfSend } from './standing-of-send.ts'

/** The first one tells what all others wait for. */
export const explainQueue: Handler<App, typeof contract> = async ({ sql }, { body }) => {
  const lanes = await lanesOf(sql, body.conversation_id)
  if (lanes.length === 0) return { history: [standing('no message waits to be sent in it')] }
  const heads = lanes.map(async ({ organizationId, first, count }) => {
    const head = await standingOfSend(sql, { organizationId, conversationId: body.conversation_id, id: first })
    const behind = count > 1 ? `, and ${count - 1} more behind it` : ''
    return standing(`${first} ${head?.what ?? 'was just settled'}${behind}`, { id: first, ...head?.details })
  })
  return { history: await Promise.all(heads) }
}

interface LaneOfSends {
  organizationId: string
  first: string
  count: number
}

/** The conversation's own, and those of sends that were let out of its order. */
const lanesOf = (sql: Sql, conversationId: string) => sql<LaneOfSends[]>`
  with lanes as (
    select ${conversationId} as id
    union all select id from send_lanes where strpos(id, ':') > 0 and split_part(id, ':', 1) = ${conversationId}
  )
  select h.organization_id, h.message_id as first, n.count from lanes l
  cross join lateral (select organization_id, message_id from sends where lane = l.id order by lane, seq limit 1) h
  cross join lateral (select count(*)::int as count from sends where lane = l.id) n
`
