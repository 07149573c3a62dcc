import type { TransactionSql } from '@app/shared/database.ts'
import { record } from '@app/shared/events.ts'
import type { Directive, Done } from '@app/shared/mailbox.ts'
import { messageFailedEvent } from './message-failed.ts'
import { messageSentEvent } from './message-sent.ts'
import type { OpenSend } from './open-send.ts'
import { type Outcome, parkMs } from './outcome.ts'

type DoneSend = Done<OpenSend, Outcome>

/** One message every 6 s to a recipient, 45 of them borrowed ahead (the platform's pair limit). */
const pairIntervalMs = 6_000
const pairBurstMs = 44 * pairIntervalMs

/**
 * Writes what became of open sends: the message, its open row, the attempt, the events. The message's rank only rises, so
 * an outcome that a callback was faster than changes nothing; who raises it records the event.
 */
export async function settleSends(tx: TransactionSql, done: DoneSend[]): Promise<Directive[]> {
  const at = new Date()
  const closed = done.filter(({ outcome }) => outcome?.kind === 'sent' || outcome?.kind === 'failed')
  const raised = new Set(closed.length > 0 ? await raise(tx, closed) : [])
  const events = closed.flatMap(({ item, outcome }) => (raised.has(item.id) ? eventOf(item, outcome, at) : []))
  const [, , , , more] = await Promise.all([
    closed.length > 0 ? close(tx, closed) : undefined,
    keepOpen(tx, done),
    recordAttempts(tx, done, at),
    record(tx, events),
    lanesWithMore(tx, closed),
    slowNumbers(tx, done),
  ])
  return done.map(({ item, lane, outcome }) => directiveOf(item, lane.pacedMs, outcome, more))
}

function directiveOf(item: OpenSend, pacedMs: number, outcome: Outcome | null, more: Set<string>): Directive {
  const { laneId } = item
  const next = more.has(laneId) ? 0 : null
  switch (outcome?.kind) {
    case 'sent': {
      const ahead = pacedMs + pairIntervalMs
      return { laneId, pacedMs: ahead, waitMs: ahead > pairBurstMs ? ahead - pairBurstMs : next }
    }
    case 'failed':
      return { laneId, waitMs: next }
    case 'again':
      return { laneId, waitMs: isLetOut(item) ? 0 : outcome.waitMs }
    case 'park':
      return { laneId, waitMs: parkMs }
    case 'parked':
      return { laneId, waitMs: outcome.waitMs }
    case undefined:
      return { laneId, waitMs: 0 }
  }
}

async function raise(tx: TransactionSql, closed: DoneSend[]): Promise<string[]> {
  const rows = closed.map(({ item, outcome }) => ({
    organization_id: item.organizationId,
    phone_number_id: item.phoneNumberId,
    id: item.id,
    ...(outcome?.kind === 'sent' && { status: 'sent', rank: 3, upstream_id: outcome.upstreamId, error: null }),
    ...(outcome?.kind === 'failed' && {
      status: 'failed',
      rank: outcome.unknown ? 2 : 6,
      upstream_id: null,
      error: {
        code: outcome.failure.code,
        message: outcome.failure.message,
        provider_code: outcome.failure.providerCode,
      },
    }),
  }))
  const raised = await tx<{ id: string }[]>`
    with u as (
      select * from json_to_recordset(${JSON.stringify(rows)}::text::json) as u(organization_id text, phone_number_id text,
        id text, status text, rank smallint, upstream_id text, error jsonb)
    ), locked as (
      select m.organization_id, m.phone_number_id, m.id from messages m join u using (organization_id, phone_number_id, id)
      order by m.id for update of m
    )
    update messages m set status = u.status, rank = u.rank, upstream_id = coalesce(m.upstream_id, u.upstream_id), error = u.error
    from u join locked using (organization_id, phone_number_id, id)
    where m.organization_id = u.organization_id and m.phone_number_id = u.phone_number_id and m.id = u.id and m.rank < u.rank
    returning m.id
  `
  return raised.map(({ id }) => id)
}

function eventOf(item: OpenSend, outcome: Outcome | null, at: Date) {
  if (outcome?.kind === 'sent') return [messageSentEvent(item, outcome.upstreamId, at, outcome.waId)]
  return outcome?.kind === 'failed' ? [messageFailedEvent(item, outcome.failure, at)] : []
}

const close = (tx: TransactionSql, closed: DoneSend[]) =>
  tx`delete from sends where seq = any(${closed.map(({ item }) => item.seq)}::bigint[])`

/** A send that keeps failing leaves its conversation's order, where the organization chose `relaxed`, after its second attempt. */
const isLetOut = (item: OpenSend) => item.relaxed && item.attempts === 2

async function keepOpen(tx: TransactionSql, done: DoneSend[]) {
  const open = done.filter(({ outcome }) => !outcome || outcome.kind === 'again' || outcome.kind === 'park')
  if (open.length === 0) return
  const rows = open.map(({ item, outcome }) => ({
    seq: item.seq,
    // Not started (too late in the lease): the attempt that was recorded did not happen.
    attempts: outcome ? item.attempts : item.attempts - (item.step === 'send' ? 1 : 0),
    park_ms: outcome?.kind === 'park' ? parkMs : null,
    lane: outcome?.kind === 'again' && isLetOut(item) ? `${item.laneId}:${item.id}` : item.laneId,
    grp: item.phoneNumberId,
    wait_ms: outcome?.kind === 'again' ? outcome.waitMs : 0,
  }))
  await tx`
    with u as (
      select * from json_to_recordset(${JSON.stringify(rows)}::text::json)
        as u(seq bigint, attempts int, park_ms float8, lane text, grp text, wait_ms float8)
    ), moved as (
      insert into send_lanes (id, grp, due_at)
      select u.lane, u.grp, now() + u.wait_ms * interval '1 ms' from u join sends s using (seq) where s.lane <> u.lane
      on conflict (id) do update set due_at = excluded.due_at
    )
    update sends s set attempts = u.attempts, begun_at = null, parked_until = now() + u.park_ms * interval '1 ms', lane = u.lane
    from u where s.seq = u.seq
  `
}

async function recordAttempts(tx: TransactionSql, done: DoneSend[], at: Date) {
  const rows = done.flatMap(({ item, outcome }) => {
    const attempt = outcome && 'attempt' in outcome ? outcome.attempt : null
    if (!attempt || !item.begunAt) return []
    return {
      organization_id: item.organizationId,
      message_id: item.id,
      attempt: item.attempts,
      begun_at: item.begunAt.toISOString(),
      ended_at: at.toISOString(),
      outcome: attempt.outcome,
      http_status: attempt.httpStatus,
      upstream_code: attempt.upstreamCode,
      detail: attempt.detail,
    }
  })
  if (rows.length === 0) return
  await tx`
    insert into send_attempts (organization_id, message_id, attempt, begun_at, ended_at, outcome, http_status, upstream_code, detail)
    select organization_id, message_id, attempt, begun_at, ended_at, outcome, http_status, upstream_code, detail
    from json_to_recordset(${JSON.stringify(rows)}::text::json) as a(organization_id text, message_id text, attempt int,
      begun_at timestamptz, ended_at timestamptz, outcome text, http_status int, upstream_code int, detail text)
    on conflict (organization_id, message_id, attempt) do nothing
  `
}

async function lanesWithMore(tx: TransactionSql, closed: DoneSend[]): Promise<Set<string>> {
  if (closed.length === 0) return new Set()
  const lanes = closed.map(({ item }) => item.laneId)
  const rows = await tx<{ id: string }[]>`
    select l as id from unnest(${lanes}::text[]) l where exists (select from sends where lane = l)
  `
  return new Set(rows.map(({ id }) => id))
}

async function slowNumbers(tx: TransactionSql, done: DoneSend[]) {
  for (const { item, outcome } of done) {
    if (outcome?.kind !== 'again' || outcome.slowNumberMs === 0) continue
    await tx`
      update pace set tat = greatest(tat, now()) + ${outcome.slowNumberMs} * interval '1 ms' where grp = ${item.phoneNumberId}
    `
  }
}
