import type { Fragment, Sql } from '@app/shared/database/database.ts'
import type { StoredError } from '../messages/messages.ts'

export interface ExplainedMessage {
  id: string
  organizationId: string
  phoneNumberId: string
  conversationId: string
  direction: 'inbound' | 'outbound'
  type: string
  status: string
  rank: number
  told: number
  error: StoredError | null
  requestId: string
  upstreamId: string | null
  source: string
  mediaId: string | null
  revokedAt: Date | null
  edits: { edited_at: string }[] | null
  createdAt: Date
}

/** A message by our id or by the platform's, of whatever organization; undefined when there is none. */
export async function findMessage(sql: Sql, id: string): Promise<ExplainedMessage | undefined> {
  const [message] = await (id.startsWith('msg_') ? byOurId(sql, id) : byUpstreamId(sql, id))
  return message
}

/** Messages are kept by number; an operator has the id alone. */
const byOurId = (sql: Sql, id: string) => sql<ExplainedMessage[]>`
  select m.* from (select distinct organization_id, phone_number_id from senders) s
  cross join lateral (
    ${messagesWhere(sql, sql`organization_id = s.organization_id and phone_number_id = s.phone_number_id and id = ${id}`)}
  ) m limit 1
`

async function byUpstreamId(sql: Sql, upstreamId: string) {
  const ofOne = sql`organization_id = s.organization_id and upstream_id = ${upstreamId}`
  const named = await sql<ExplainedMessage[]>`
    select m.* from (select distinct organization_id from senders) s
    cross join lateral (${messagesWhere(sql, ofOne)}) m limit 1
  `
  if (named.length > 0) return named
  const [double] = await sql<{ messageId: string }[]>`
    select d.message_id from (select distinct organization_id from senders) s
    cross join lateral (select message_id from message_doubles where ${ofOne} limit 1) d limit 1
  `
  return double ? byOurId(sql, double.messageId) : []
}

const messagesWhere = (sql: Sql, condition: Fragment) => sql`
  select id, organization_id, phone_number_id, conversation_id, direction, type, status, rank, told, error, request_id,
    upstream_id, source, media_id, revoked_at, edits, created_at
  from messages where ${condition} limit 1
`
