import type { Sql } from '@app/shared/database/database.ts'
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

/** Accepts sends in one statement; answers a row for each, in their order. */
export function insertMany(sql: Sql, sends: AcceptableSend[], of: Holder) {
  const rows = JSON.stringify(sends.map((send, n) => ({ n, may_begin: of.mayBegin[n], ...send })))
  return sql<InsertedRow[]>`
    ${taken(sql, rows)}, ${begun(sql, of)}, counted as (
      insert into monthly_sends as c (organization_id, month, count)
      select organization_id, ${thisMonth(sql)}, count(*) from w where counts group by 1 order by 1
      ${onKnownMonth(sql)}
    )
    select ${insertedColumns(sql)}
    from g left join s on s.message_id = g.id left join l on s.seq is not null and l.id = g.conversation_id
    order by g.n
  `
}

/** Keys and messages, as `w` those that were taken; `g` has them all, with their senders. */
const taken = (sql: Sql, rows: string) => sql`
    with u as (
      select * from json_to_recordset(${rows}::text::json) as u(n int, may_begin boolean, id text, organization_id text, phone_number_id text,
        conversation_id text, contact_id text, type text, recipient text, content text, body jsonb,
        media jsonb, media_id text, parties jsonb,
        context_id text, request_id text, traceparent text, created_at timestamptz, key text, fingerprint text, answer text)
      where (select ${waitingForKeys(sql)}) is not null
    ), g as (
      -- A column of its own: Postgres expects few nulls, and would plan all that follows for a single send, comparing each with each.
      select *, account_id is not null and refusal is null as is_open from (
        select u.*, s.account_id, s.business_account_id, s.phone_number, s.sealed_token, s.settings, q.rest is not null as counts,
          case when s.refusal is null and k.is_again is null and q.rest < count(*)
            filter (where s.refusal is null and s.account_id is not null and k.is_again is null)
            over (partition by u.organization_id order by u.n) then 'quota_used_up' else s.refusal end as refusal
        from u left join lateral (
          select * from senders
          where organization_id = u.organization_id and phone_number_id = u.phone_number_id limit 1
        ) s on true
        left join lateral (${quotaRest(sql)}) q on true
        left join lateral (
          -- A repeated send takes nothing of the quota. Without a quota it makes no difference, and is not looked up.
          select true as is_again from idempotency.keys
          where s.settings ->> 'messages_per_month' is not null and organization_id = u.organization_id and key = u.key
            and created_at >= now() - interval '24 hours' limit 1
        ) k on true
      ) g
    ), fresh as (
      insert into idempotency.keys as k (organization_id, key, fingerprint, status, answer)
      select organization_id, key, fingerprint, 200, convert_to(answer, 'UTF8') from g
      where key is not null and is_open order by organization_id, key
      ${onKnownKey(sql)}
      returning organization_id, key
    ), m as (
      insert into messages (organization_id, phone_number_id, id, conversation_id, contact_id, direction, type, recipient,
        content, body, media_id, parties, context_id, status, rank, request_id, traceparent, created_at)
      select organization_id, phone_number_id, id, conversation_id, contact_id, 'outbound', type, recipient,
        content, body, media_id, parties, context_id, 'queued', 0, request_id, traceparent, created_at
      from g where is_open
        and (key is null or exists (select from fresh f where f.organization_id = g.organization_id and f.key = g.key))
      order by n
      returning id
    ), w as (
      select n, may_begin, id, organization_id, phone_number_id, conversation_id, media, counts,
        now() + (settings ->> 'message_ttl_hours')::int * interval '1 hour' as expires_at,
        row_number() over (partition by conversation_id order by n) = 1 as leads
      from g join m using (id)
      where (select ${waitingForLanes(sql)} where (select count(*) from m) >= 0) is not null
    )
`

/**
 * Lanes, as `l`, and open sends, as `s`, with those that begin. The pace of a number is locked until the end: who takes the
 * number's leave to send waits for what begins here.
 */
function begun(sql: Sql, of: Holder) {
  return sql`
    free as (
      select p.* from (select distinct phone_number_id as grp from w where may_begin) n cross join lateral (
        select grp, open_for, ${tokensOf(sql, of.burstMs)} as tokens
        from pace where grp = n.grp and not exists (
          select from send_lanes where grp = n.grp and ${isDue(sql, of)} and held_until < now()
        )
        limit 1 for update skip locked
      ) p
    ), ready as materialized (
      select n, conversation_id, row_number() over (partition by phone_number_id order by n) <= tokens as in_pace
      from w join free on grp = phone_number_id and open_for = organization_id where leads and media is null and may_begin
    ), l as (
      insert into send_lanes as l (id, grp, due_at, arrivals, held_until, holder)
      select conversation_id, phone_number_id, now(), 1,
        case when r.n is null then '-infinity' else now() + ${of.leaseMs} * interval '1 ms' end,
        case when r.n is null then null else ${of.holder}::bigint end
      from w left join (select n from ready where in_pace) r using (n)
      where leads order by 1
      ${onKnownLane(sql, of)}
    ), charged as (
      ${charging(sql, 'pace', sql`select grp, count(*) from l where mine group by 1`)}
    ), s as (
      insert into sends (organization_id, phone_number_id, message_id, lane, media, expires_at, attempts, begun_at)
      select w.organization_id, w.phone_number_id, w.id, w.conversation_id, w.media, w.expires_at,
        case when l.mine then 1 else 0 end, case when l.mine then clock_timestamp() end
      from w left join l on l.id = w.conversation_id and w.leads order by w.n
      returning seq, message_id, begun_at
    )
  `
}
