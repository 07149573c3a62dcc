import type { Handler } from '@app/shared/api/contract.ts'
import type { explainMessage as contract, Moment } from '@app/shared/contracts/explain.ts'
import type { Sql } from '@app/shared/database/database.ts'
import { notFound } from '@app/shared/api/problem.ts'
import type { App } from '../app.ts'

interface Message {
  organizationId: string
  phoneNumberId: string
  conversationId: string
  direction: 'inbound' | 'outbound'
  type: string
  status: string
  rank: number
  error: { code: string } | null
  requestId: string
  upstreamId: string | null
  createdAt: Date
}

export const explainMessage: Handler<App, typeof contract> = async ({ sql }, { body: { id } }) => {
  // Messages are kept by number; an operator has the id alone.
  const [message] = await sql<Message[]>`
    select m.* from (select distinct organization_id, phone_number_id from senders) s
    cross join lateral (
      select organization_id, phone_number_id, conversation_id, direction, type, status, rank, error, request_id,
        upstream_id, created_at
      from messages where organization_id = s.organization_id and phone_number_id = s.phone_number_id and id = ${id} limit 1
    ) m limit 1
  `
  if (!message) throw notFound()
  const { organizationId, requestId, upstreamId, direction } = message
  const doubles = await doublesOf(sql, organizationId, id)
  return {
    organization_id: organizationId,
    request_id: requestId === '' ? null : requestId,
    event_ids: direction === 'inbound' ? [upstreamId ?? ''] : eventIds(id, [upstreamId ?? [], doubles].flat()),
    history: [
      beginningOf(message),
      ...(await attemptsOf(sql, organizationId, id)),
      ...(await endOf(sql, id, { ...message, doubles })),
    ],
  }
}

const statuses = ['sent', 'delivered', 'read', 'failed', 'played']

const eventIds = (id: string, upstreamIds: string[]) => [
  `${id}:sent`,
  `${id}:failed`,
  ...upstreamIds.flatMap((upstreamId) => statuses.map((status) => `${upstreamId}:${status}`)),
]

/** The platform's other ids of a message that it was given more than once. */
async function doublesOf(sql: Sql, organizationId: string, id: string): Promise<string[]> {
  const doubles = await sql<{ upstreamId: string }[]>`
    select upstream_id from message_doubles where organization_id = ${organizationId} and message_id = ${id} order by 1
  `
  return doubles.map(({ upstreamId }) => upstreamId)
}

const beginningOf = ({ direction, createdAt, requestId, type, conversationId, phoneNumberId }: Message): Moment => ({
  at: createdAt.toISOString(),
  what: direction === 'inbound' ? 'written by the customer' : requestId === '' ? 'sent from the phone app' : 'accepted',
  details: { type, conversation_id: conversationId, phone_number_id: phoneNumberId },
})

interface Attempt {
  attempt: number
  begunAt: Date
  endedAt: Date
  outcome: string
  httpStatus: number | null
  upstreamCode: number | null
  detail: string | null
}

async function attemptsOf(sql: Sql, organizationId: string, id: string): Promise<Moment[]> {
  const attempts = await sql<Attempt[]>`
    select attempt, begun_at, ended_at, outcome, http_status, upstream_code, detail from send_attempts
    where organization_id = ${organizationId} and message_id = ${id} order by attempt
  `
  return attempts.map(({ attempt, begunAt, endedAt, outcome, httpStatus, upstreamCode, detail }) => ({
    at: begunAt.toISOString(),
    what: `attempt ${attempt} to send it: ${outcome}`,
    details: {
      duration_ms: endedAt.getTime() - begunAt.getTime(),
      http_status: httpStatus,
      provider_code: upstreamCode,
      detail,
    },
  }))
}

interface OpenSend {
  attempts: number
  begunAt: Date | null
  parkedUntil: Date | null
  expiresAt: Date
  ahead: number
  dueAt: Date | null
  heldUntil: Date | null
  refusal: string | null
}

/** How it stands: its end, or what it waits for. */
async function endOf(
  sql: Sql,
  id: string,
  { organizationId, conversationId, phoneNumberId, doubles, ...message }: Message & { doubles: string[] },
) {
  const [open] = await sql<OpenSend[]>`
    select o.attempts, o.begun_at, o.parked_until, o.expires_at, l.due_at, nullif(l.held_until, '-infinity') as held_until,
      (select count(*)::int from sends b where b.lane = o.lane and b.seq < o.seq) as ahead,
      (select refusal from senders where organization_id = ${organizationId} and phone_number_id = ${phoneNumberId})
    from sends o left join send_lanes l on l.id = o.lane
    where o.lane in (${conversationId}, ${`${conversationId}:${id}`}) and o.message_id = ${id}
  `
  const { status, error, upstreamId, rank } = message
  const end: Moment = {
    at: null,
    what: open ? waitsFor(open) : `is ${rank === 2 ? 'unknown, shown as failed' : status}`,
    details: {
      status,
      message_id: upstreamId,
      ...(doubles.length > 0 && { other_message_ids: doubles }),
      ...(error && { error }),
      ...(open && standingOf(open)),
    },
  }
  return [end]
}

function waitsFor({ ahead, begunAt, parkedUntil, attempts, refusal }: OpenSend) {
  if (refusal !== null) return `waits to be failed: ${refusal}`
  if (ahead > 0) return `waits for ${ahead} earlier messages of its conversation`
  if (begunAt) return 'is being sent'
  if (parkedUntil) return 'waits for a callback that tells whether the platform took it'
  return attempts > 0 ? 'waits for its next attempt' : 'waits for its turn'
}

const standingOf = ({ attempts, dueAt, heldUntil, parkedUntil, expiresAt }: OpenSend) => ({
  attempts,
  due_at: dueAt,
  held_until: heldUntil,
  parked_until: parkedUntil,
  expires_at: expiresAt,
})
