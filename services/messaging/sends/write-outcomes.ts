import type { Sql, TransactionSql } from '@app/shared/database/database.ts'
import { type Conditional, recording } from '@app/shared/events/events.ts'
import { givingBack, type Release } from '@app/shared/mailbox/lanes.ts'
import type { Done } from '@app/shared/mailbox/mailbox.ts'
import type { StoredError } from '../messages/messages.ts'
import { isKnown, type OpenSend } from './open-send.ts'
import { type Outcome, parkMs } from './outcome.ts'

type DoneSend = Done<OpenSend, Outcome>

/**
 * Writes outcomes in one statement: messages that are sent or failed with their open rows and events, open rows that stay,
 * attempts; and gives the lanes back. Answers whether a lane is due at once.
 *
 * Messages are locked in the order of their ids, as the statuses of callbacks lock them, and lanes after all messages. So a
 * callback is either seen here, and then its send does not wait and is not tried again, or it comes after this and ends the wait
 * itself. A send whose number was refused during its call does not wait for another try either: whoever refused the number found
 * no wait to end.
 *
 * An event that is `given` a message is recorded only if the platform was not known to have that message, and its rank rises.
 */
export async function writeOutcomes(
  sql: Sql | TransactionSql,
  done: DoneSend[],
  { at, told, lanes }: { at: Date; told: Conditional[]; lanes: Release[] },
): Promise<{ isDue: boolean }> {
  const afterMessages = sql`(select count(*) from locked) >= 0`
  // A look-up for each lane: an `exists` may be planned as one reading of all open sends.
  const hasNext = sql`(select true from sends s where s.lane = lane.id and s.seq not in (select seq from ended) limit 1)`
  const waitIsOver = sql`lane.id in (select lane from locked where status is null and (known or is_refused))`
  const isNew = sql`given is null or given in (select id from locked where not known and old_rank < new_rank)`
  const [written] = await sql<{ isDue: boolean }[]>`
    ${outcomes(sql, done, at)}, events as (
      ${recording(sql, told, isNew)}
    ), ${givingBack(sql, 'send_lanes', lanes, { after: afterMessages, isDue: hasNext, waitIsOver })}
    select coalesce(bool_or(is_due), false) as is_due from given_back
  `
  return { isDue: written?.isDue ?? false }
}

/**
 * Sends with their messages as they were, as `locked`; those that are not open any more, as `ended`; attempts.
 * - A failed later attempt does not fail a message that the platform has from an earlier one. If it took that attempt as well, the
 *   message has a second id.
 * - An outcome that comes late, or again since the answer was lost, changes no later attempt (`isToldOf`).
 * - A failure without a call counts only if nobody else has begun a call meanwhile (`isAsTaken`).
 */
function outcomes(sql: Sql | TransactionSql, done: DoneSend[], at: Date) {
  const sends = done.flatMap((one) => sendRow(one, at))
  return sql`
    with ${lockedBy(sql, sends)}, raised as (
      update messages m set status = l.status, upstream_id = coalesce(m.upstream_id, l.upstream_id), error = l.error,
        rank = l.new_rank
      from locked l
      where m.organization_id = l.organization_id and m.phone_number_id = l.phone_number_id and m.id = l.id
        and l.old_rank < l.new_rank and (l.status = 'sent' or not l.known)
    ), doubled as (
      insert into message_doubles (organization_id, upstream_id, message_id)
      select organization_id, upstream_id, id from locked where upstream_id <> known_id
      on conflict (organization_id, upstream_id) do nothing
    ), ended as (
      select seq from locked where status is not null or known
    ), gone as (
      -- Not joined: while few sends are open a join would read all of them, and be kept.
      delete from sends where seq = any(array(select seq from ended))
    ), o as (
      select l.* from locked l
      cross join lateral (select from sends where seq = l.seq and ${isToldOf(sql)} limit 1) s
      where goes_on and not known
    ), moved as (
      insert into send_lanes (id, grp, due_at)
      select lane, phone_number_id, case when is_refused then now() else now() + wait_ms * interval '1 ms' end from o where let_out
      on conflict (id) do update set due_at = excluded.due_at
    ), kept as (
      update sends s set attempts = o.attempts, begun_at = null, parked_until = now() + o.park_ms * interval '1 ms',
        lane = o.lane, upstream_media_id = coalesce(o.upstream_media_id, s.upstream_media_id)
      from o where s.seq = o.seq and s.seq = any(array(select seq from o))
    ), tried as (
      ${trying(sql, done, at)}
    )
  `
}

/** Outcomes, as `u`, and with their messages, as `locked`, but for those of sends that have changed since they were taken. */
function lockedBy(sql: Sql | TransactionSql, sends: SendRow[]) {
  // Then a callback may still lift it. A look-up, not an `exists`, as in `hasNext`.
  const mayHaveArrived = sql`(
    select true from send_attempts
    where organization_id = u.organization_id and message_id = u.id and outcome = 'unknown' limit 1
  )`
  // The message is named so that it is locked first.
  const isAsTaken = sql`(
    select true from sends where seq = u.seq and attempts = u.of_attempt and begun_at is null and m.rank is not null for update
  )`
  const isRefused = sql`(
    select refusal is not null from senders
    where organization_id = u.organization_id and phone_number_id = u.phone_number_id limit 1
  )`
  return sql`
    u as (
      select * from json_to_recordset(${JSON.stringify(sends)}::text::json) as u(seq bigint, organization_id text,
        phone_number_id text, id text, lane text, of_attempt int, begun_at timestamptz, unmade boolean, unasked boolean,
        status text, rank smallint, upstream_id text, error jsonb, attempts int, park_ms float8, let_out boolean, wait_ms float8, upstream_media_id text)
    ), locked as (
      -- goes_on: a column of its own, of which the planner expects many: else each that does is compared with all.
      select u.*, status is null as goes_on, m.rank as old_rank, m.upstream_id as known_id, ${isKnown(sql)} as known,
        case when status = 'failed' and ${mayHaveArrived} then 2 else u.rank end as new_rank,
        case when wait_ms is not null then ${isRefused} end as is_refused
      from (select * from u order by id) u
      cross join lateral (
        select rank, upstream_id from messages
        where organization_id = u.organization_id and phone_number_id = u.phone_number_id and id = u.id limit 1 for update
      ) m
      where unasked is null or ${isAsTaken}
    )
  `
}

/**
 * Whether the outcome `l` is of the attempt that its open send has come to. A later attempt has a higher number; or the same number as
 * one that was not made, and another beginning. It is also of that attempt if the send is not begun any more because the lane's next
 * holder found it begun.
 */
function isToldOf(sql: Sql | TransactionSql) {
  // To the millisecond: between two of the same number half a lease has passed.
  const isSame = sql`date_trunc('milliseconds', begun_at) = l.begun_at`
  const wasFound = sql`(
    select true from send_attempts where organization_id = l.organization_id and message_id = l.id
      and attempt = l.of_attempt and begun_at = l.begun_at limit 1
  )`
  return sql`
    attempts <= l.of_attempt and (${isSame} or begun_at is null and (l.unmade is null or ${wasFound}))
  `
}

function trying(sql: Sql | TransactionSql, done: DoneSend[], at: Date) {
  const attempts = done.flatMap((send) => attemptRow(send, at))
  return sql`
    insert into send_attempts as known (organization_id, message_id, attempt, begun_at, ended_at, outcome, http_status,
      upstream_code, detail)
    select distinct on (organization_id, message_id, attempt)
      organization_id, message_id, attempt, begun_at, ended_at, outcome, http_status, upstream_code, detail
    from json_to_recordset(${JSON.stringify(attempts)}::text::json) as a(organization_id text, message_id text,
      attempt int, begun_at timestamptz, ended_at timestamptz, outcome text, http_status int, upstream_code int, detail text)
    order by organization_id, message_id, attempt, begun_at desc
    on conflict (organization_id, message_id, attempt) do update
      set begun_at = excluded.begun_at, ended_at = excluded.ended_at, outcome = excluded.outcome,
        http_status = excluded.http_status, upstream_code = excluded.upstream_code, detail = excluded.detail
      -- The earlier one was not made; or it was taken for lost, and its answer has come.
      where known.begun_at < excluded.begun_at or known.begun_at = excluded.begun_at and known.outcome = 'unknown'
  `
}

/** How a message ends, or else what its open row becomes; what is left out is null. */
interface SendRow {
  seq: string
  organization_id: string
  phone_number_id: string
  id: string
  lane: string
  of_attempt: number
  begun_at: string | undefined
  /** It was begun, and the platform was not called. */
  unmade?: true
  /** It fails without a call: only if nobody has begun a call since it was taken, which is possible once the lease is over. */
  unasked?: true
  status?: 'sent' | 'failed'
  rank?: number
  upstream_id?: string
  error?: StoredError
  attempts?: number
  park_ms?: number
  let_out?: boolean
  /** Until it is tried again. */
  wait_ms?: number
  upstream_media_id?: string
}

function sendRow({ item, outcome }: DoneSend, at: Date): SendRow[] {
  const row = {
    seq: item.seq,
    organization_id: item.organizationId,
    phone_number_id: item.phoneNumberId,
    id: item.id,
    lane: item.laneId,
    of_attempt: item.attempts,
    begun_at: item.begunAt?.toISOString(),
  }
  const { attempts } = item
  const unbegun = { ...row, of_attempt: attempts - 1, attempts: attempts - 1 }
  switch (outcome?.kind) {
    case 'sent':
      return [{ ...row, status: 'sent', rank: 3, upstream_id: outcome.upstreamId }]
    case 'failed': {
      const { code, message, providerCode } = outcome.failure
      const by = providerCode === null ? 'us' : 'answer'
      const error = { code, message, provider_code: providerCode, failed_at: at.toISOString(), by } as const
      const failed = { status: 'failed', rank: outcome.unknown ? 2 : 6, error } as const
      if (item.step === 'send') return [{ ...row, ...failed }]
      return [{ ...(item.step === 'upload' ? unbegun : row), ...failed, unasked: true }]
    }
    case 'again':
      return outcome.letOut
        ? [{ ...row, attempts, lane: `${item.laneId}:${item.id}`, let_out: true, wait_ms: outcome.waitMs }]
        : [{ ...row, attempts, wait_ms: outcome.waitMs }]
    case 'park':
      return [{ ...row, attempts, park_ms: parkMs }]
    case 'parked':
      return [{ ...row, attempts, park_ms: outcome.waitMs }]
    case 'known':
      return [{ ...row, attempts }]
    // The file comes first: there is no such attempt yet.
    case 'uploading':
      return [unbegun]
    case 'uploaded':
      return [{ ...unbegun, upstream_media_id: outcome.upstreamMediaId }]
    // The lease was too old to begin. Of a send that was found begun or parked nobody knows more than before.
    case undefined:
      if (item.step === 'upload') return [unbegun]
      return item.step === 'send' ? [{ ...row, attempts: attempts - 1, unmade: true }] : []
  }
}

function attemptRow({ item, outcome }: DoneSend, at: Date) {
  const attempt = outcome && 'attempt' in outcome ? outcome.attempt : null
  if (!attempt) return []
  return [
    {
      organization_id: item.organizationId,
      message_id: item.id,
      attempt: item.attempts,
      begun_at: (item.begunAt ?? at).toISOString(),
      ended_at: at.toISOString(),
      outcome: attempt.outcome,
      http_status: attempt.httpStatus,
      upstream_code: attempt.upstreamCode,
      detail: attempt.detail,
    },
  ]
}
