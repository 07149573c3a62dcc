import type { Sql, TransactionSql } from '@app/shared/database.ts'
import type { Recorded } from '@app/shared/events.ts'
import type { Lane } from '@app/shared/lanes.ts'
import type { Done } from '@app/shared/mailbox.ts'
import type { OpenSend } from './open-send.ts'
import { type Outcome, parkMs } from './outcome.ts'

type DoneSend = Done<OpenSend, Outcome>

/** An event that an outcome tells. */
export interface Told {
  event: Recorded
  /** Recorded only if the rank of this message rises; null: in any case. */
  ifRaised: string | null
}

/** How a lane is given back. */
export interface GivenBack {
  lane: Lane
  /** Due again after that long; null: at once if another send is open in it, else asleep. */
  waitMs: number | null
  /** How far its pace stands in the future now; undefined: as it was. */
  pacedMs?: number
}

/**
 * Writes outcomes in one statement: messages that are sent or failed with their open rows and events, open rows that stay,
 * attempts; and gives the lanes back. Answers whether a lane is due at once. Messages are locked in the order of their ids,
 * each before its open row, as the statuses of callbacks lock them, and lanes after all messages.
 */
export async function writeOutcomes(
  sql: Sql | TransactionSql,
  done: DoneSend[],
  { at, told, lanes }: { at: Date; told: Told[]; lanes: GivenBack[] },
): Promise<{ isDue: boolean }> {
  const [written] = await sql<{ isDue: boolean }[]>`
    ${outcomes(sql, done, at)}, events as (
      insert into outbox (id, subject, headers, payload)
      select id, subject, headers, convert_to(payload, 'UTF8')
      from json_to_recordset(${JSON.stringify(told.map(eventRow))}::text::json)
        as e(n int, if_raised text, id text, subject text, headers jsonb, payload text)
      where if_raised is null or if_raised in (select id from raised)
      order by n
    ), ${givingBack(sql, done, lanes)}
    select coalesce(bool_or(is_due), false) as is_due from given_back
  `
  return { isDue: written?.isDue ?? false }
}

/** Messages that are sent or failed, as `raised` those whose rank rises; open rows; attempts. */
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
      delete from sends using locked l where sends.seq = l.seq
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
      from o where s.seq = o.seq
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

/** Lanes that are still held by who gives them back, as `given_back`; after all messages. */
function givingBack(sql: Sql | TransactionSql, done: DoneSend[], lanes: GivenBack[]) {
  const seqs = new Map(done.map(({ item }) => [item.laneId, item.seq]))
  const rows = JSON.stringify(lanes.map((given) => laneRow(given, seqs)))
  return sql`
    mine as (
      select g.id, g.seq, g.arrivals as seen, g.wait_ms, g.paced_ms from (
        select * from json_to_recordset(${rows}::text::json)
          as g(id text, seq bigint, arrivals bigint, held_until timestamptz, wait_ms float8, paced_ms float8)
        where (select count(*) from raised) >= 0
        order by id
      ) g cross join lateral (
        select from send_lanes where id = g.id and held_until = g.held_until limit 1 for update
      ) l
    ), given_back as (
      update send_lanes l set held_until = '-infinity',
        paced_until = case when paced_ms is null then l.paced_until else now() + paced_ms * interval '1 ms' end,
        due_at = case when wait_ms is not null then now() + wait_ms * interval '1 ms' when l.arrivals <> seen then now()
          when exists (select from sends s where s.lane = l.id and s.seq <> mine.seq) then now() end
      from mine where l.id = mine.id
      returning l.due_at is not null and l.due_at <= now() as is_due
    )
  `
}

const eventRow = ({ event, ifRaised }: Told, n: number) => ({ n, if_raised: ifRaised, ...event })

const laneRow = ({ lane, waitMs, pacedMs }: GivenBack, seqs: Map<string, string>) => ({
  id: lane.id,
  // Of a lane that was found empty: no send has it.
  seq: seqs.get(lane.id) ?? '0',
  arrivals: lane.arrivals,
  held_until: lane.heldUntil,
  wait_ms: waitMs,
  paced_ms: pacedMs ?? null,
})

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
