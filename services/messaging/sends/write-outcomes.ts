import type { Sql, TransactionSql } from '@app/shared/database.ts'
import { type Conditional, recording } from '@app/shared/events.ts'
import { givingBack, type Release } from '@app/shared/lanes.ts'
import type { Done } from '@app/shared/mailbox.ts'
import type { OpenSend } from './open-send.ts'
import { type Outcome, parkMs } from './outcome.ts'

type DoneSend = Done<OpenSend, Outcome>

/**
 * Writes outcomes in one statement: messages that are sent or failed with their open rows and events, open rows that stay,
 * attempts; and gives the lanes back. Answers whether a lane is due at once. Messages are locked in the order of their ids,
 * each before its open row, as the statuses of callbacks lock them, and lanes after all messages.
 * An event that is `given` a message is recorded only if the rank of that message rises.
 */
export async function writeOutcomes(
  sql: Sql | TransactionSql,
  done: DoneSend[],
  { at, told, lanes }: { at: Date; told: Conditional[]; lanes: Release[] },
): Promise<{ isDue: boolean }> {
  const afterMessages = sql`(select count(*) from raised) >= 0`
  // A look-up for each lane: an `exists` may be planned as one reading of all open sends.
  const hasNext = sql`(select true from sends s where s.lane = lane.id and s.seq not in (select seq from c) limit 1)`
  const [written] = await sql<{ isDue: boolean }[]>`
    ${outcomes(sql, done, at)}, events as (
      ${recording(sql, told, sql`given is null or given in (select id from raised)`)}
    ), ${givingBack(sql, 'send_lanes', lanes, { after: afterMessages, isDue: hasNext })}
    select coalesce(bool_or(is_due), false) as is_due from given_back
  `
  return { isDue: written?.isDue ?? false }
}

/** Messages that are sent or failed, as `c`, as `raised` those whose rank rises; open rows; attempts. */
function outcomes(sql: Sql | TransactionSql, done: DoneSend[], at: Date) {
  const closed = done.flatMap(closedRow)
  const open = done.flatMap(openRow)
  const attempts = done.flatMap((send) => attemptRow(send, at))
  return sql`
    with c as (
      select * from json_to_recordset(${JSON.stringify(closed)}::text::json) as u(seq bigint, organization_id text,
        phone_number_id text, id text, status text, rank smallint, upstream_id text, error jsonb)
    ), locked as (
      select c.*, m.rank as old_rank from (select * from c order by id) c
      cross join lateral (
        select rank from messages
        where organization_id = c.organization_id and phone_number_id = c.phone_number_id and id = c.id limit 1 for update
      ) m
    ), raised as (
      update messages m set status = l.status, rank = l.rank, upstream_id = coalesce(m.upstream_id, l.upstream_id), error = l.error
      from locked l
      where m.organization_id = l.organization_id and m.phone_number_id = l.phone_number_id and m.id = l.id and l.old_rank < l.rank
      returning m.id
    ), gone as (
      -- Not joined: while few sends are open a join would read all of them, and be kept.
      delete from sends where seq = any(array(select seq from locked))
    ), o as (
      select * from json_to_recordset(${JSON.stringify(open)}::text::json) as u(seq bigint, attempts int, park_ms float8,
        lane text, let_out boolean, grp text, wait_ms float8, upstream_media_id text)
    ), moved as (
      insert into send_lanes (id, grp, due_at)
      select lane, grp, now() + wait_ms * interval '1 ms' from o where let_out
      on conflict (id) do update set due_at = excluded.due_at
    ), kept as (
      update sends s set attempts = o.attempts, begun_at = null, parked_until = now() + o.park_ms * interval '1 ms',
        lane = o.lane, upstream_media_id = coalesce(o.upstream_media_id, s.upstream_media_id)
      from o where s.seq = o.seq and s.seq = any(array(select seq from o))
    ), tried as (
      insert into send_attempts (organization_id, message_id, attempt, begun_at, ended_at, outcome, http_status,
        upstream_code, detail)
      select organization_id, message_id, attempt, begun_at, ended_at, outcome, http_status, upstream_code, detail
      from json_to_recordset(${JSON.stringify(attempts)}::text::json) as a(organization_id text, message_id text,
        attempt int, begun_at timestamptz, ended_at timestamptz, outcome text, http_status int, upstream_code int, detail text)
      on conflict (organization_id, message_id, attempt) do nothing
    )
  `
}

interface ClosedRow {
  seq: string
  organization_id: string
  phone_number_id: string
  id: string
  status: 'sent' | 'failed'
  rank: number
  upstream_id: string | null
  error: { code: string; message: string; provider_code: number | null } | null
}

function closedRow({ item, outcome }: DoneSend): ClosedRow[] {
  const row = {
    seq: item.seq,
    organization_id: item.organizationId,
    phone_number_id: item.phoneNumberId,
    id: item.id,
  }
  if (outcome?.kind === 'sent')
    return [{ ...row, status: 'sent', rank: 3, upstream_id: outcome.upstreamId, error: null }]
  if (outcome?.kind !== 'failed') return []
  const { code, message, providerCode } = outcome.failure
  const error = { code, message, provider_code: providerCode }
  return [{ ...row, status: 'failed', rank: outcome.unknown ? 2 : 6, upstream_id: null, error }]
}

function openRow({ item, outcome }: DoneSend) {
  const row = {
    seq: item.seq,
    attempts: item.attempts,
    park_ms: null as number | null,
    lane: item.laneId,
    let_out: false,
    grp: item.phoneNumberId,
    wait_ms: 0,
    upstream_media_id: null as string | null,
  }
  // The attempt that was counted did not happen: the lease was too old for it, or the file came first.
  const uncounted = item.step === 'send' || item.step === 'upload' ? item.attempts - 1 : item.attempts
  switch (outcome?.kind) {
    case undefined:
    case 'uploading':
      return [{ ...row, attempts: uncounted }]
    case 'uploaded':
      return [{ ...row, attempts: uncounted, upstream_media_id: outcome.upstreamMediaId }]
    case 'again':
      return outcome.letOut
        ? [{ ...row, lane: `${item.laneId}:${item.id}`, let_out: true, wait_ms: outcome.waitMs }]
        : [row]
    case 'park':
      return [{ ...row, park_ms: parkMs }]
    case 'parked':
    case 'sent':
    case 'failed':
      return []
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
