import type { TransactionSql } from '@app/shared/database/database.ts'
import type { Before } from './lock-messages.ts'

/** Another id of the platform's for a message: it was sent again while nobody knew whether the first had arrived. */
export interface Double {
  organizationId: string
  upstreamId: string
  messageId: string
  /** As the message's own, of this id. */
  told: number
}

/** Of messages that are locked, by their ids. */
export async function findDoubles(tx: TransactionSql, messages: Before[]): Promise<Map<string, Double[]>> {
  if (messages.length === 0) return new Map()
  const rows = messages.map(({ organizationId, id }) => ({ organization_id: organizationId, id }))
  const doubles = await tx<Double[]>`
    select d.organization_id, d.upstream_id, d.message_id, d.told
    from json_to_recordset(${JSON.stringify(rows)}::text::json) as u(organization_id text, id text)
    cross join lateral (
      select * from message_doubles where organization_id = u.organization_id and message_id = u.id
    ) d order by d.upstream_id
  `
  return Map.groupBy(doubles, ({ messageId }) => messageId)
}

/** Writes doubles of messages that are locked. */
export async function writeDoubles(tx: TransactionSql, doubles: Double[]): Promise<void> {
  if (doubles.length === 0) return
  const rows = doubles.map(({ organizationId, upstreamId, messageId, told }) => ({
    organization_id: organizationId,
    upstream_id: upstreamId,
    message_id: messageId,
    told,
  }))
  await tx`
    insert into message_doubles (organization_id, upstream_id, message_id, told)
    select * from json_to_recordset(${JSON.stringify(rows)}::text::json)
      as u(organization_id text, upstream_id text, message_id text, told smallint)
    on conflict (organization_id, upstream_id) do update set told = excluded.told
  `
}
