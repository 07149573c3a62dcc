import type { Sql } from '@app/shared/database/database.ts'
import type { Lane } from '@app/shared/mailbox/lanes.ts'
import type { FailureName } from '@app/shared/api/problem.ts'
import { insertMany } from './insert-many.ts'
import { insertOne } from './insert-one.ts'
import type { InsertedRow } from './insert-parts.ts'
import type { KnownConversation } from './known-conversations.ts'

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
  /** As the dispatcher says it. */
  dueFrom: number | null
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

export interface Sender {
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
 *
 * A send that comes alone has a statement of its own, since to order, count and join many costs as much as the rest of it: measured,
 * it takes 0.4 of the time.
 */
export async function insertSends(sql: Sql, sends: AcceptableSend[], of: Holder): Promise<Inserted[]> {
  const [first] = sends
  if (first && sends.length === 1) return [read(await insertOne(sql, first, of))]
  return (await insertMany(sql, sends, of)).map(read)
}

const nothing: Inserted = { known: false, refusal: null, accepted: false, due: false, begun: null }

/** No row: the organization has no such number. */
function read(row: InsertedRow | undefined): Inserted {
  if (!row?.known) return nothing
  const { refusal, accepted, due, seq, begunAt, id, group, arrivals, heldUntil, failures, pacedMs } = row
  const lane = { id, group, arrivals, heldUntil, failures, pacedMs }
  const begun = seq !== null && begunAt !== null ? { seq, at: begunAt, lane, sender: row } : null
  return { known: true, refusal, accepted, due, begun }
}
