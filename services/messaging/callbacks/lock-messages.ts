import type { TransactionSql } from '@app/shared/database/database.ts'
import type { SentMessageRow } from '../sends/message-sent.ts'
import type { Reported } from './status.ts'

/** A message before its statuses are applied. */
export interface Before extends SentMessageRow {
  rank: number
  told: number
  upstreamId: string | null
  mediaId: string | null
}

/** The messages of the statuses, by our id where the status carries it, else by the platform's; locked in the order of their ids. */
export async function lockMessages(tx: TransactionSql, batch: Reported[]): Promise<Map<number, Before>> {
  const rows = batch.map(({ item, status }, n) => ({
    n,
    organization_id: item.organizationId,
    phone_number_id: item.phoneNumberId,
    upstream_id: status.id,
    our_id: status.biz_opaque_callback_data ?? null,
  }))
  const found = await tx<(Omit<Before, 'senderPhone' | 'businessAccountId'> & { ns: number[] })[]>`
    with u as (
      select * from json_to_recordset(${JSON.stringify(rows)}::text::json)
        as u(n int, organization_id text, phone_number_id text, upstream_id text, our_id text)
    ), named as (
      select u.n, m.organization_id, m.phone_number_id, m.id from u cross join lateral (
        select organization_id, phone_number_id, id from messages
        where organization_id = u.organization_id and phone_number_id = u.phone_number_id and id = u.our_id
          and direction = 'outbound' limit 1
      ) m
    ), all_found as (
      select * from named
      union all
      select u.n, m.organization_id, m.phone_number_id, m.id from u cross join lateral (
        (select organization_id, phone_number_id, id from messages
        where organization_id = u.organization_id and upstream_id = u.upstream_id and direction = 'outbound' limit 1)
        union all
        (select organization_id, u.phone_number_id, message_id from message_doubles
        where organization_id = u.organization_id and upstream_id = u.upstream_id limit 1)
        limit 1
      ) m
      where not exists (select from named where named.n = u.n)
    ), grouped as (
      select organization_id, phone_number_id, id, array_agg(n) as ns from all_found group by 1, 2, 3 order by id
    )
    select g.ns, m.organization_id, m.phone_number_id, m.id, m.type, m.recipient, m.content, m.parties, m.context_id, m.source,
      m.traceparent, m.rank, m.told, m.upstream_id, m.media_id, f.opaque as media_opaque
    from grouped g
    cross join lateral (
      select * from messages
      where organization_id = g.organization_id and phone_number_id = g.phone_number_id and id = g.id limit 1 for update
    ) m
    left join lateral (
      select opaque from media where organization_id = m.organization_id and id = m.media_id limit 1
    ) f on true
  `
  const byPosition = new Map<number, Before>()
  for (const { ns, ...row } of found) {
    const item = batch[ns[0] ?? 0]?.item
    if (!item) continue
    const before = { ...row, senderPhone: item.senderPhone, businessAccountId: item.businessAccountId }
    for (const n of ns) byPosition.set(n, before)
  }
  return byPosition
}
