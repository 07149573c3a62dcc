import { lockTimeoutMs, type Sql } from '@app/shared/database/database.ts'
import { type Lane, laneColumns } from '@app/shared/mailbox/lanes.ts'
import { charging, tokensOf } from '@app/shared/mailbox/pace.ts'
import type { FailureName } from '@app/shared/api/problem.ts'
import type { KnownConversation } from './known-conversations.ts'
import { quotaRest, thisMonth } from '../senders/quota.ts'

/**
 * How long a send waits for a request of the same key: the other sends of its statement, and those of the next ones, wait with
 * it. For a lane it may be longer.
 */
const keyTimeoutMs = 200

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
  parties: KnownConversation['parties']
  context_id: string | null
  request_id: string
  traceparent: string
  created_at: string
  /** Idempotency key with its fingerprint and the answer to store, all null without one. */
  key: string | null
  fingerprint: string | null
  answer: string | null
}

/** Who claims lanes in the statement that fills them. */
export interface Holder {
  /** Which of the sends may begin. */
  mayBegin: boolean[]
  leaseMs: number
  /** How far a number may run ahead of its pace. */
  burstMs: number
  /** A number of this statement's own, by which it knows the lanes that it has claimed. */
  holder: number
}

/** What became of a send. */
export interface Inserted {
  /** Whether the organization has the number. */
  known: boolean
  refusal: FailureName | null
  accepted: boolean
  /** Whether its lane waits for a claim. */
  due: boolean
  /** Set when its attempt has begun: its lane is held, and its sender's data are here. */
  begun: { seq: string; at: Date; lane: Lane; sender: Sender } | null
}

interface Sender {
  accountId: string
  businessAccountId: string
  phoneNumber: string | null
  sealedToken: string
  resendUnknown: boolean
  relaxed: boolean
}

/**
 * Idempotency key, message, open send and lane of each send, or none of them, in one statement. The first send of a lane
 * that sleeps is claimed and begun with it when a slot is free, its number is within its pace and nothing of the number
 * waits for a claim already: who has waited goes first.
 */
export async function insertSends(sql: Sql, sends: AcceptableSend[], of: Holder): Promise<Inserted[]> {
  const rows = JSON.stringify(sends.map((send, n) => ({ n, may_begin: of.mayBegin[n], ...send })))
  const inserted = await sql<Row[]>`
    ${taken(sql, rows)}, ${begun(sql, of)}, counted as (
      insert into monthly_sends as c (organization_id, month, count)
      select organization_id, ${thisMonth(sql)}, count(*) from w where counts group by 1 order by 1
      on conflict (organization_id, month) do update set count = c.count + excluded.count
    )
    select g.account_id is not null as known, g.refusal, s.seq is not null as accepted, s.seq, s.begun_at,
      coalesce(l.held_until < now(), false) as due,
      ${laneColumns(sql, 'l')},
      g.account_id, g.business_account_id, g.phone_number, case when s.begun_at is not null then g.sealed_token end as sealed_token,
      g.settings ->> 'unknown_outcome' = 'resend' as resend_unknown, g.settings ->> 'ordering' = 'relaxed' as relaxed
    from g left join s on s.message_id = g.id left join l on s.seq is not null and l.id = g.conversation_id
    order by g.n
  `
  return inserted.map(read)
}

/** Keys and messages, as `w` those that were taken; `g` has them all, with their senders. */
const taken = (sql: Sql, rows: string) => sql`
    with u as (
      select * from json_to_recordset(${rows}::text::json) as u(n int, may_begin boolean, id text, organization_id text, phone_number_id text,
        conversation_id text, contact_id text, type text, recipient text, content text, body jsonb,
        media jsonb, media_id text, parties jsonb,
        context_id text, request_id text, traceparent text, created_at timestamptz, key text, fingerprint text, answer text)
      where (select ${waitingForLocks(sql, keyTimeoutMs)}) is not null
    ), g as (
      -- As a column of its own: a null is expected to be rare, and all that follows would be planned for a single send, comparing all with all.
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
          -- Who sends it again takes nothing of a quota, and without one it makes no difference.
          select true as is_again from idempotency.keys
          where s.settings ->> 'messages_per_month' is not null and organization_id = u.organization_id and key = u.key
            and created_at >= now() - interval '24 hours' limit 1
        ) k on true
      ) g
    ), fresh as (
      insert into idempotency.keys as k (organization_id, key, fingerprint, status, answer)
      select organization_id, key, fingerprint, 200, convert_to(answer, 'UTF8') from g
      where key is not null and is_open order by organization_id, key
      on conflict (organization_id, key) do update set fingerprint = excluded.fingerprint, status = excluded.status,
        answer = excluded.answer, sealed = false, held_until = null, created_at = now()
        where k.created_at < now() - interval '24 hours'
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
      where (select ${waitingForLocks(sql, lockTimeoutMs)} where (select count(*) from m) >= 0) is not null
    )
`

/** From here on the statement waits for a lock that long. */
const waitingForLocks = (sql: Sql, ms: number) => sql`set_config('lock_timeout', ${String(ms)}::text, true)`

/**
 * Lanes, as `l`, and open sends, as `s`, with those that begin. The pace of a number is locked until the end: who takes the
 * number's leave to send waits for what begins here.
 */
function begun(sql: Sql, of: Holder) {
  const isAsleep = sql`l.due_at is null and l.held_until < now()`
  return sql`
    free as (
      select p.* from (select distinct phone_number_id as grp from w where may_begin) n cross join lateral (
        select grp, open_for, ${tokensOf(sql, of.burstMs)} as tokens
        from pace where grp = n.grp and not exists (
          select from send_lanes where grp = n.grp and due_at <= now() and held_until < now()
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
      -- Also the group: the number may have been another's in between.
      on conflict (id) do update set due_at = coalesce(l.due_at, excluded.due_at), arrivals = l.arrivals + 1, grp = excluded.grp,
        held_until = case when ${isAsleep} then excluded.held_until else l.held_until end,
        holder = case when ${isAsleep} then excluded.holder else l.holder end
      returning id, grp, arrivals, held_until, failures, paced_until, holder is not distinct from ${of.holder}::bigint as mine
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

interface Row extends Sender, Lane {
  known: boolean
  refusal: FailureName | null
  accepted: boolean
  due: boolean
  seq: string | null
  begunAt: Date | null
}

function read(row: Row): Inserted {
  const { known, refusal, accepted, due, seq, begunAt, id, group, arrivals, heldUntil, failures, pacedMs } = row
  const lane = { id, group, arrivals, heldUntil, failures, pacedMs }
  const begun = seq !== null && begunAt !== null ? { seq, at: begunAt, lane, sender: row } : null
  return { known, refusal, accepted, due, begun }
}
