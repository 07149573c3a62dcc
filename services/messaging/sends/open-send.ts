import type { Fragment, Sql, TransactionSql } from '@app/shared/database/database.ts'
import { each } from '@app/shared/database/each.ts'
import type { Want } from '@app/shared/mailbox/mailbox.ts'
import type { SentMessageRow } from './message-sent.ts'

/** What is to be done with the first open send of a lane. */
export type Step =
  /** A callback told that the platform has it: there is nothing more to do. */
  | 'known'
  /** Bring its file to the platform first; nothing is recorded as begun. */
  | 'upload'
  /** Call the platform; the attempt is recorded. */
  | 'send'
  /** A holder died between the call's beginning and its outcome. */
  | 'orphaned'
  /** The outcome is unknown, and there is time for a callback still. */
  | 'parked'
  /** No callback came: fail, or send again, as the organization chose. */
  | 'unknown'
  /** Account, customer, subscription or entitlement stand against it. */
  | 'refused'
  /** Not attempted within its time to live. */
  | 'expired'

export interface OpenSend extends SentMessageRow {
  laneId: string
  seq: string
  step: Step
  attempts: number
  /** Of the attempt that begins, or that was found begun. */
  begunAt: Date | null
  parkedMs: number
  body: unknown
  media: { id: string; path: (string | number)[] } | null
  /** The platform's id of the file, once it is there. */
  upstreamMediaId: string | null
  refusal: string | null
  accountId: string
  sealedToken: string
  resendUnknown: boolean
  relaxed: boolean
  traceparent: string
}

/** The first open send of each lane with what to do about it; a send that begins is recorded as begun. */
export async function takeHeads(tx: TransactionSql, wants: Want[]): Promise<OpenSend[]> {
  const lanes = wants.map(({ lane }) => lane.id)
  return tx<OpenSend[]>`
    with heads as (
      select h.* from ${each(tx, lanes)} l
      cross join lateral (${firstOf(tx, tx`l`)} for update) h
    ), steps as (
      select h.*, s.refusal, s.account_id, s.sealed_token, s.phone_number as sender_phone, s.business_account_id,
        s.settings ->> 'unknown_outcome' = 'resend' as resend_unknown, s.settings ->> 'ordering' = 'relaxed' as relaxed,
        m.type, m.recipient, m.content, m.body, m.parties, m.context_id, m.source, m.traceparent, m.media_id,
        ${stepOf(tx)} as step
      from heads h cross join lateral (
        select * from senders where organization_id = h.organization_id and phone_number_id = h.phone_number_id limit 1
      ) s
      cross join lateral (
        select * from messages
        where organization_id = h.organization_id and phone_number_id = h.phone_number_id and id = h.message_id limit 1
      ) m
    ), begun as (
      update sends set attempts = attempts + 1, begun_at = clock_timestamp()
      where seq = any(array(select seq from steps where step = 'send')) returning seq, attempts, begun_at
    )
    select st.lane as lane_id, st.seq, st.media, st.upstream_media_id, st.step,
      case st.step when 'upload' then st.attempts + 1 else coalesce(b.attempts, st.attempts) end as attempts,
      coalesce(b.begun_at, st.begun_at) as begun_at,
      (greatest(0, extract(epoch from st.parked_until - now())) * 1000)::float8 as parked_ms,
      st.refusal, st.account_id, st.sealed_token, st.sender_phone, st.business_account_id, st.resend_unknown, st.relaxed,
      st.organization_id, st.phone_number_id, st.message_id as id, st.type, st.recipient, st.content, st.body,
      st.parties, st.context_id, st.source, st.traceparent, f.opaque as media_opaque
    from steps st left join begun b on b.seq = st.seq
    left join lateral (
      select opaque from media where organization_id = st.organization_id and id = st.media_id limit 1
    ) f on true
  `
}

/** The step of a send `h`, of its sender `s` and its message `m`. */
export const stepOf = (sql: Sql | TransactionSql) => sql`
  case
    when ${isKnown(sql)} then 'known'
    when h.begun_at is not null then 'orphaned'
    when h.parked_until > now() then 'parked'
    when h.parked_until is not null then 'unknown'
    when s.refusal is not null then 'refused'
    when h.attempts = 0 and h.expires_at < now() then 'expired'
    when h.media is not null and h.upstream_media_id is null then 'upload'
    else 'send'
  end
`

/** Whether the platform has the message `m`: a callback named it, be it that it was sent, failed there, or was played. */
export const isKnown = (sql: Sql | TransactionSql) => sql`(m.upstream_id is not null or m.rank >= 3)`

/**
 * The first open send of a lane. A range of one: looked for by equality, in the order of `seq`, it would be found by reading
 * the whole queue in that order, with a plan that was made while the queue was empty.
 */
export const firstOf = (sql: Sql | TransactionSql, lane: Fragment) => sql`
  select * from sends where lane >= ${lane} and lane <= ${lane} order by lane, seq limit 1
`
