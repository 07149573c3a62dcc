import { batched } from '@app/shared/batched.ts'
import type { Sql } from '@app/shared/database.ts'
import type { FailureName } from '@app/shared/problem.ts'
import { quotaRest, thisMonth } from '../senders/quota.ts'

/** A send on its way into the tables, in the statement's words. */
export interface AcceptableSend {
  id: string
  organization_id: string
  phone_number_id: string
  conversation_id: string
  contact_id: string
  type: string
  /** `+E164` or a bsuid. */
  recipient: string
  content: string | null
  body: unknown
  /** A file of ours that the platform must have first: its id, and where it stands in the block. */
  media: { id: string; path: (string | number)[] } | null
  media_id: string | null
  parties: unknown
  context_id: string | null
  request_id: string
  traceparent: string
  created_at: string
  /** Idempotency key with its fingerprint and the answer to store, all null without one. */
  key: string | null
  fingerprint: string | null
  answer: string | null
}

/** `key_taken`: the stored answer decides. Anything else is why the number may not send. */
export type Verdict = 'accepted' | 'key_taken' | FailureName

/**
 * Accepts sends in natural batches, in one statement each: idempotency key, message, open send and lane, or none of them.
 * One batch at a time, so that sends of a conversation are numbered as they were accepted.
 */
export function acceptSends(sql: Sql) {
  const run = batched<AcceptableSend, Verdict>((sends) => insert(sql, sends), {
    inFlight: 1,
    rows: 128,
    sizeOf: (send) => send.content?.length ?? 0,
  })
  /** Keys on their way: a double waits for the first, since one statement cannot hold both. */
  const underWay = new Map<string, Promise<unknown>>()

  return async (send: AcceptableSend): Promise<Verdict> => {
    if (send.key === null) return run(send)
    const key = `${send.organization_id} ${send.key}`
    const first = underWay.get(key)
    if (first) {
      await first.catch(() => {})
      return 'key_taken'
    }
    const job = run(send).finally(() => underWay.delete(key))
    underWay.set(key, job)
    return job
  }
}

async function insert(sql: Sql, sends: AcceptableSend[]): Promise<Verdict[]> {
  const rows = JSON.stringify(sends.map((send, n) => ({ n, ...send })))
  const verdicts = await sql<{ known: boolean; refusal: FailureName | null; accepted: boolean }[]>`
    with u as (
      select * from json_to_recordset(${rows}::text::json) as u(n int, id text, organization_id text, phone_number_id text,
        conversation_id text, contact_id text, type text, recipient text, content text, body jsonb,
        media jsonb, media_id text, parties jsonb,
        context_id text, request_id text, traceparent text, created_at timestamptz, key text, fingerprint text, answer text)
    ), g as (
      select u.*, s.account_id is not null as known, q.rest is not null as counts,
        case when s.refusal is null and q.rest < row_number() over (partition by u.organization_id order by u.n)
          then 'quota_used_up' else s.refusal end as refusal,
        (s.settings ->> 'message_ttl_hours')::int * interval '1 hour' as ttl
      from u left join lateral (
        select organization_id, account_id, refusal, settings from senders
        where organization_id = u.organization_id and phone_number_id = u.phone_number_id limit 1
      ) s on true
      left join lateral (${quotaRest(sql)}) q on true
    ), fresh as (
      insert into idempotency.keys as k (organization_id, key, fingerprint, status, answer)
      select organization_id, key, fingerprint, 200, convert_to(answer, 'UTF8') from g
      where key is not null and known and refusal is null order by organization_id, key
      on conflict (organization_id, key) do update set fingerprint = excluded.fingerprint, status = excluded.status,
        answer = excluded.answer, sealed = false, held_until = null, created_at = now()
        where k.created_at < now() - interval '24 hours'
      returning organization_id, key
    ), m as (
      insert into messages (organization_id, phone_number_id, id, conversation_id, contact_id, direction, type, recipient,
        content, body, media_id, parties, context_id, status, rank, request_id, traceparent, created_at)
      select organization_id, phone_number_id, id, conversation_id, contact_id, 'outbound', type, recipient,
        content, body, media_id, parties, context_id, 'queued', 0, request_id, traceparent, created_at
      from g where known and refusal is null
        and (key is null or exists (select from fresh f where f.organization_id = g.organization_id and f.key = g.key))
      order by n
      returning id
    ), s as (
      insert into sends (organization_id, phone_number_id, message_id, lane, media, expires_at)
      select organization_id, phone_number_id, id, conversation_id, media, now() + ttl from g join m using (id) order by n
    ), l as (
      insert into send_lanes as l (id, grp, due_at, arrivals)
      select conversation_id, min(phone_number_id), now(), 1 from g join m using (id) group by 1 order by 1
      on conflict (id) do update set due_at = coalesce(l.due_at, excluded.due_at), arrivals = l.arrivals + 1
    ), counted as (
      insert into monthly_sends as c (organization_id, month, count)
      select organization_id, ${thisMonth(sql)}, count(*) from g join m using (id) where counts group by 1 order by 1
      on conflict (organization_id, month) do update set count = c.count + excluded.count
    )
    select g.known, g.refusal, m.id is not null as accepted from g left join m on m.id = g.id order by g.n
  `
  return verdicts.map(({ known, refusal, accepted }) => {
    if (!known) return 'resource_not_found'
    return refusal ?? (accepted ? 'accepted' : 'key_taken')
  })
}
