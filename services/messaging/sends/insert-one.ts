import type { Fragment, Sql } from '@app/shared/database/database.ts'
import { charging, tokensOf } from '@app/shared/mailbox/pace.ts'
import { quotaRest, thisMonth } from '../senders/quota.ts'
import type { AcceptableSend, Holder } from './insert-sends.ts'
import {
  insertedColumns,
  type InsertedRow,
  isDue,
  onKnownKey,
  onKnownLane,
  onKnownMonth,
  waitingForKeys,
  waitingForLanes,
} from './insert-parts.ts'

/** Accepts one send, as `insertMany` does many. No row: the organization has no such number. */
export async function insertOne(sql: Sql, send: AcceptableSend, of: Holder): Promise<InsertedRow | undefined> {
  const { organization_id: organizationId, phone_number_id: phoneNumberId, conversation_id: conversationId, key } = send
  const mayBegin = of.mayBegin[0] === true && send.media === null
  const json = (value: unknown) => sql`${value === null ? null : JSON.stringify(value)}::text::jsonb`
  const ifKeyed = (part: Fragment) => (key === null ? sql`` : part)
  const [row] = await sql<InsertedRow[]>`
    with g as (
      ${senderOf(sql, send)}
    ), ${ifKeyed(sql`fresh as (${keyOf(sql, send)}),`)} m as (
      insert into messages (organization_id, phone_number_id, id, conversation_id, contact_id, direction, type, recipient,
        content, body, media_id, parties, context_id, status, rank, request_id, traceparent, created_at)
      select ${organizationId}, ${phoneNumberId}, ${send.id}, ${conversationId}, ${send.contact_id}, 'outbound', ${send.type},
        ${send.recipient}, ${send.content}, ${json(send.body)}, ${send.media_id}, ${json(send.parties)}, ${send.context_id},
        'queued', 0, ${send.request_id}, ${send.traceparent}, ${send.created_at}::text::timestamptz
      from g where refusal is null ${ifKeyed(sql`and exists (select from fresh)`)}
      returning id
    ), free as (
      select ${tokensOf(sql, of.burstMs)} >= 1 as in_pace from pace
      where grp = ${phoneNumberId} and open_for = ${organizationId} and ${mayBegin} and exists (select from m)
        and not exists (select from send_lanes where grp = ${phoneNumberId} and ${isDue(sql, of)} and held_until < now())
      limit 1 for update skip locked
    ), l as (
      insert into send_lanes as l (id, grp, due_at, arrivals, held_until, holder)
      select ${conversationId}, ${phoneNumberId}, now(), 1,
        case when in_pace then now() + ${of.leaseMs} * interval '1 ms' else '-infinity' end,
        case when in_pace then ${of.holder}::bigint end
      from m left join free on true ${ifKeyed(sql`where (select ${waitingForLanes(sql)} from m) is not null`)}
      ${onKnownLane(sql, of)}
    ), charged as (
      ${charging(sql, 'pace', sql`select grp, 1 as count from l where mine`)}
    ), s as (
      insert into sends (organization_id, phone_number_id, message_id, lane, media, expires_at, attempts, begun_at)
      select ${organizationId}, ${phoneNumberId}, ${send.id}, ${conversationId}, ${json(send.media)},
        now() + (settings ->> 'message_ttl_hours')::int * interval '1 hour',
        case when mine then 1 else 0 end, case when mine then clock_timestamp() end
      from l cross join g
      returning seq, begun_at
    ), counted as (
      insert into monthly_sends as c (organization_id, month, count)
      select ${organizationId}, ${thisMonth(sql)}, 1 from m cross join g where counts
      ${onKnownMonth(sql)}
    )
    select ${insertedColumns(sql)} from g left join s on true left join l on s.seq is not null
  `
  return row
}

/** The sender, and what stands against the send. A repeated send takes nothing of the quota. */
function senderOf(sql: Sql, { organization_id: organizationId, phone_number_id: phoneNumberId, key }: AcceptableSend) {
  const isAgain = sql`exists (
    select from idempotency.keys
    where organization_id = ${organizationId} and key = ${key} and created_at >= now() - interval '24 hours'
  )`
  return sql`
    select s.account_id, s.business_account_id, s.phone_number, s.sealed_token, s.settings, q.rest is not null as counts,
      case when s.refusal is null and q.rest < 1 ${key === null ? sql`` : sql`and not ${isAgain}`} then 'quota_used_up'
        else s.refusal end as refusal
    from senders s left join lateral (${quotaRest(sql)}) q on true
    where s.organization_id = ${organizationId} and s.phone_number_id = ${phoneNumberId}
    limit 1
  `
}

const keyOf = (sql: Sql, { organization_id: organizationId, key, fingerprint, answer }: AcceptableSend) => sql`
  insert into idempotency.keys as k (organization_id, key, fingerprint, status, answer)
  select ${organizationId}, ${key}, ${fingerprint}, 200, convert_to(${answer}, 'UTF8') from g
  where refusal is null and (select ${waitingForKeys(sql)}) is not null
  ${onKnownKey(sql)}
  returning key
`
