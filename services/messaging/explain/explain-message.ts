import type { Handler } from '@app/shared/api/contract.ts'
import { type explainMessage as contract, type Moment, momentAt, standing } from '@app/shared/contracts/explain.ts'
import type { Sql } from '@app/shared/database/database.ts'
import { notFound } from '@app/shared/api/problem.ts'
import type { App } from '../app.ts'
import { callbacksOfMessage, deletionOf } from './callbacks-of-message.ts'
import { fileOfMessage } from './file-of-message.ts'
import { type ExplainedMessage, findMessage } from './find-message.ts'
import { standingOfSend } from './standing-of-send.ts'

export const explainMessage: Handler<App, typeof contract> = async ({ sql }, { body: { id } }) => {
  const message = await findMessage(sql, id)
  if (!message) return explainAbsent(sql, id)
  const { organizationId, requestId, upstreamId, direction } = message
  const doubles = await doublesOf(sql, message)
  const upstreamIds = [upstreamId ?? [], doubles.map((double) => double.upstreamId)].flat()
  const callbacks = await Promise.all(upstreamIds.map((one) => callbacksOfMessage(sql, one, { isKnown: true })))
  const now = await standingOf(sql, message, doubles)
  const file = await fileOfMessage(sql, message)
  return {
    id: message.id,
    organization_id: organizationId,
    request_id: requestId === '' ? null : requestId,
    event_ids: direction === 'inbound' ? [upstreamId ?? ''] : eventIds(message.id, upstreamIds),
    told: toldOf(message, doubles, { isWaiting: file.isWaiting }),
    history: [
      beginningOf(message),
      ...(await attemptsOf(sql, message)),
      ...revisionsOf(message),
      ...callbacks.flat().map(({ moment }) => moment),
      ...file.history,
      now,
    ],
  }
}

/** Of one that is not there (yet, or any more), what came for it or became of it, by the platform's id. */
async function explainAbsent(sql: Sql, id: string) {
  const known = [...(await deletionOf(sql, id)), ...(await callbacksOfMessage(sql, id, { isKnown: false }))]
  const [first] = known
  if (!first) throw notFound()
  const { organizationId } = first
  const history = known.filter((one) => one.organizationId === organizationId).map(({ moment }) => moment)
  return { id: null, organization_id: organizationId, request_id: null, event_ids: [id], history }
}

/** Statuses by their bit in `told`. */
const statuses = { sent: 1, delivered: 2, read: 4, failed: 8, played: 16 }

const toldStatuses = (told: number) => Object.entries(statuses).flatMap(([word, bit]) => (told & bit ? [word] : []))

const eventIds = (id: string, upstreamIds: string[]) => [
  `${id}:sent`,
  `${id}:failed`,
  ...upstreamIds.flatMap((upstreamId) => Object.keys(statuses).map((status) => `${upstreamId}:${status}`)),
]

/** The events that subscribers were told of it, by what is written with them. */
function toldOf(message: ExplainedMessage, doubles: Double[], { isWaiting }: { isWaiting: boolean }) {
  const { id, direction, upstreamId, phoneNumberId, status, told, source } = message
  const event = (eventId: string, type: string) => ({ id: eventId, type, phone_number_id: phoneNumberId })
  // What was imported, or written in the phone app, is told otherwise or not at all.
  if (source !== 'api') return []
  if (direction === 'inbound') return isWaiting ? [] : [event(upstreamId ?? '', 'message.received')]
  const ids = [...(upstreamId === null ? [] : [{ upstreamId, told }]), ...doubles]
  return [
    ...(upstreamId === null ? [] : [event(`${id}:sent`, 'message.sent')]),
    ...(upstreamId === null && status === 'failed' ? [event(`${id}:failed`, 'message.status')] : []),
    ...ids.flatMap((one) => toldStatuses(one.told).map((word) => event(`${one.upstreamId}:${word}`, 'message.status'))),
  ]
}

interface Double {
  upstreamId: string
  told: number
}

/** The platform's other ids of a message that it was given more than once. */
const doublesOf = (sql: Sql, { organizationId, id }: ExplainedMessage) => sql<Double[]>`
  select upstream_id, told from message_doubles where organization_id = ${organizationId} and message_id = ${id} order by 1
`

const beginningOf = (message: ExplainedMessage): Moment => {
  const { direction, createdAt, source, type, conversationId, phoneNumberId, requestId } = message
  const outbound = requestId === '' ? 'sent from the phone app' : 'accepted'
  const details = { type, conversation_id: conversationId, phone_number_id: phoneNumberId, source }
  return momentAt(createdAt, direction === 'inbound' ? 'written by the customer' : outbound, details)
}

interface Attempt {
  attempt: number
  begunAt: Date
  endedAt: Date
  outcome: string
  httpStatus: number | null
  upstreamCode: number | null
  detail: string | null
}

async function attemptsOf(sql: Sql, { organizationId, id }: ExplainedMessage): Promise<Moment[]> {
  const attempts = await sql<Attempt[]>`
    select attempt, begun_at, ended_at, outcome, http_status, upstream_code, detail from send_attempts
    where organization_id = ${organizationId} and message_id = ${id} order by attempt
  `
  return attempts.map(({ attempt, begunAt, endedAt, outcome, httpStatus, upstreamCode, detail }) =>
    momentAt(begunAt, `attempt ${attempt} to send it: ${outcome}`, {
      duration_ms: endedAt.getTime() - begunAt.getTime(),
      http_status: httpStatus,
      provider_code: upstreamCode,
      detail,
    }),
  )
}

const revisionsOf = ({ edits, revokedAt }: ExplainedMessage): Moment[] => [
  ...(edits ?? []).map((edit) => ({ at: edit.edited_at, what: 'edited by its sender' })),
  ...(revokedAt ? [momentAt(revokedAt, 'deleted for everyone by its sender')] : []),
]

/** How it stands: its end, or what it waits for. */
async function standingOf(sql: Sql, message: ExplainedMessage, doubles: Double[]): Promise<Moment> {
  const open = await standingOfSend(sql, message)
  const { status, error, upstreamId, told } = message
  return standing(open?.what ?? endOf(message), {
    status,
    message_id: upstreamId,
    ...(doubles.length > 0 && { other_message_ids: doubles.map((double) => double.upstreamId) }),
    ...(told > 0 && { told: toldStatuses(told) }),
    ...(error && { error }),
    ...open?.details,
  })
}

const deciders = { us: 'we decided', answer: 'the platform answered', callback: 'a callback of the platform told' }

function endOf({ status, rank, error }: ExplainedMessage) {
  if (status !== 'failed' || !error) return `is ${status}`
  const { code, by, failed_at: failedAt } = error
  const decided = by === undefined ? '' : `, as ${deciders[by]}`
  const known = rank === 2 ? '; it may have arrived, and a callback may still say so' : ''
  return `is failed: ${code}${decided}${failedAt === undefined ? '' : ` at ${failedAt}`}${known}`
}
