import { batched } from '@app/shared/work/batched.ts'
import { messageStatusReported } from '@app/shared/contracts/messaging.ts'
import type { TransactionSql } from '@app/shared/database/database.ts'
import { record, type Recorded, recorded } from '@app/shared/events/events.ts'
import type { z } from 'zod'
import type { Core } from '../app.ts'
import { forgetUploadsOf } from '../media/forget-uploads.ts'
import { followUps } from '../sends/follow-ups.ts'
import type { StoredError } from '../messages/messages.ts'
import { type FileAddresses, messageSentEvent } from '../sends/message-sent.ts'
import { firstOf } from '../sends/open-send.ts'
import { behaviourOf } from '../upstream/errors.ts'
import { type Double, findDoubles, writeDoubles } from './doubles.ts'
import { type Before, lockMessages } from './lock-messages.ts'
import { passthroughOf } from './passthrough.ts'
import { type Reported, Status } from './status.ts'
import type { WaitingItem } from './waiting-items.ts'

/** A status word's rank in the life of a message, and its bit in `told`. What was played was sent. */
const words = {
  sent: { rank: 3, bit: 1 },
  delivered: { rank: 4, bit: 2 },
  read: { rank: 5, bit: 4 },
  failed: { rank: 6, bit: 8 },
  played: { rank: 3, bit: 16 },
} as const

/**
 * Applies statuses, many in one transaction. The rank of a platform id only rises, so duplicates and any order end the same;
 * every distinct (platform id, status) is told once. Answers false for a status whose message is not known (yet).
 */
export function applyStatuses(core: Core): (item: WaitingItem) => Promise<boolean> {
  const apply = batched<Reported, boolean>((batch) => core.sql.begin((tx) => applyAll(tx, batch, core.media)), {
    inFlight: 1,
    rows: 256,
  })
  return async (item) => {
    const status = Status.parse(item.part)
    // Made before the status joins others, so that one too large to be told fails by itself.
    const known = await apply({ item, status, event: statusEvent(item, status) })
    if (known) core.meters.statuses.inc({ status: status.status })
    return known
  }
}

async function applyAll(tx: TransactionSql, batch: Reported[], media: FileAddresses): Promise<boolean[]> {
  const found = await lockMessages(tx, batch)
  const groups = new Map<string, Group>()
  for (const [n, reported] of batch.entries()) {
    const before = found.get(n)
    if (!before) continue
    const group = groups.get(before.id) ?? { before, reported: [] }
    group.reported.push(reported)
    groups.set(before.id, group)
  }
  const doubles = await findDoubles(
    tx,
    [...groups.values()].filter(mayHaveDoubles).map(({ before }) => before),
  )
  const changes = [...groups.values()].map((group) => changeOf(group, doubles.get(group.before.id) ?? [], media))
  await writeMessages(
    tx,
    changes.map(({ row }) => row),
  )
  await writeDoubles(
    tx,
    changes.flatMap((change) => change.doubles),
  )
  await endWaits(tx, changes)
  await forgetUploadsOf(
    tx,
    changes.flatMap(({ file }) => file ?? []),
  )
  await record(
    tx,
    changes.flatMap(({ events }) => events),
  )
  return batch.map((_, n) => found.has(n))
}

/** All that is reported of one message. */
interface Group {
  before: Before
  reported: Reported[]
}

/** Whether it matters what was told of other ids of the message: one is named, or this one has failed. */
const mayHaveDoubles = ({ before, reported }: Group) =>
  before.upstreamId !== null &&
  ((before.told & words.failed.bit) !== 0 ||
    reported.some(({ status }) => status.status === 'failed' || status.id !== before.upstreamId))

function changeOf({ before, reported }: Group, doubles: Double[], media: FileAddresses) {
  const first = reported[0]
  const named = before.upstreamId === null && first !== undefined
  const ownId = before.upstreamId ?? first?.status.id ?? ''
  const told = new Map([[ownId, before.told], ...doubles.map((double) => [double.upstreamId, double.told] as const)])
  const fresh = reported.filter(({ status }) => isNew(told, status))
  const played = reported
    .filter(({ status }) => status.status === 'played')
    .map(({ status }) => status.timestamp.getTime())
  const rank =
    told.size > 1
      ? rankOfAll([...told.values()])
      : Math.max(before.rank, ...reported.map(({ status }) => words[status.status].rank))
  const moves = rank !== before.rank
  const failed = rank === words.failed.rank ? fresh.find(({ status }) => status.status === 'failed') : undefined
  const events = fresh.flatMap((one) => [one.event, ...followUpsOf(before, one)])
  if (named) {
    const { id, recipient_id: waId = null } = first.status
    events.unshift(messageSentEvent(before, id, first.status.timestamp, { media, waId }))
  }
  return {
    before,
    named,
    events,
    file: refusedFileOf(before, fresh),
    row: {
      organization_id: before.organizationId,
      phone_number_id: before.phoneNumberId,
      id: before.id,
      rank,
      told: told.get(ownId) ?? 0,
      status: moves ? wordOf(rank) : null,
      error: moves && failed ? errorOf(failed.status) : null,
      upstream_id: named ? ownId : null,
      played_at: played.length > 0 ? new Date(Math.min(...played)).toISOString() : null,
    },
    doubles: [...told]
      .filter(([upstreamId]) => upstreamId !== ownId)
      .map(([upstreamId, bits]) => ({
        organizationId: before.organizationId,
        upstreamId,
        messageId: before.id,
        told: bits,
      })),
  }
}

/** Notes the status; answers whether it was not told of its id before. */
function isNew(told: Map<string, number>, { id, status }: Reported['status']): boolean {
  const before = told.get(id) ?? 0
  told.set(id, before | words[status].bit)
  return (before & words[status].bit) === 0
}

/** Of a message that went out more than once: what has come furthest; it has failed only when all have. */
function rankOfAll(told: number[]): number {
  const alive = told.filter((bits) => (bits & words.failed.bit) === 0)
  if (alive.length === 0) return words.failed.rank
  const ranks = Object.values(words).map(({ rank, bit }) => (alive.some((bits) => (bits & bit) !== 0) ? rank : 0))
  return Math.max(words.sent.rank, ...ranks)
}

const wordOf = (rank: number) => Object.entries(words).find(([, word]) => word.rank === rank)?.[0] ?? null

const mediaError = 131053

/** The file of a message that failed over it, if it is one of ours. */
function refusedFileOf({ organizationId, phoneNumberId, mediaId, id }: Before, fresh: Reported[]) {
  const isOverIt = fresh.some(({ status }) => status.status === 'failed' && status.errors?.[0]?.code === mediaError)
  return isOverIt && mediaId !== null ? { organizationId, phoneNumberId, mediaId, messageId: id } : null
}

const followUpsOf = (before: Before, { status }: Reported): Recorded[] =>
  status.status === 'failed' ? followUps(before, { code: status.errors?.[0]?.code ?? null, at: status.timestamp }) : []

function errorOf({ errors, timestamp }: z.output<typeof Status>): StoredError {
  const [error] = errors ?? []
  const told = { failed_at: timestamp.toISOString(), by: 'callback' } as const
  if (!error) {
    const message = 'The platform could not deliver the message.'
    return { code: 'upstream_error', message, provider_code: null, ...told }
  }
  const message = error.error_data?.details ?? error.message ?? error.title ?? ''
  return { code: behaviourOf(error.code).code, message, provider_code: error.code, ...told }
}

const statusEvent = (item: WaitingItem, status: Reported['status']): Recorded =>
  recorded(messageStatusReported, passthroughOf(item), {
    organizationId: item.organizationId,
    id: `${status.id}:${status.status}`,
    phoneNumberId: item.phoneNumberId,
  })

type Change = ReturnType<typeof changeOf>

async function writeMessages(tx: TransactionSql, rows: Change['row'][]) {
  if (rows.length === 0) return
  await tx`
    update messages m set rank = u.rank, told = u.told, status = coalesce(u.status, m.status),
      error = case when u.status is null then m.error else u.error end,
      upstream_id = coalesce(m.upstream_id, u.upstream_id), played_at = least(m.played_at, u.played_at)
    from json_to_recordset(${JSON.stringify(rows)}::text::json) as u(organization_id text, phone_number_id text, id text,
      rank smallint, told smallint, status text, error jsonb, upstream_id text, played_at timestamptz)
    where m.organization_id = u.organization_id and m.phone_number_id = u.phone_number_id and m.id = u.id
  `
}

/**
 * A callback that carries our id ends the wait of its send, be it for this or for another attempt: its conversation is due,
 * and the claim finds that the platform has the message. Of a call on its way the outcome finds it.
 */
async function endWaits(tx: TransactionSql, changes: Change[]) {
  const named = changes.filter((change) => change.named)
  if (named.length === 0) return
  const rows = named.map(({ before }) => ({ id: before.id, lane: before.parties.conversation.id }))
  await tx`
    with waiting as (
      select h.lane from json_to_recordset(${JSON.stringify(rows)}::text::json) as u(id text, lane text)
      cross join lateral unnest(array[u.lane, u.lane || ':' || u.id]) as l(id)
      -- Who was ever called for is the first of its lane.
      cross join lateral (${firstOf(tx, tx`l.id`)}) h
      where h.message_id = u.id and h.begun_at is null
    )
    update send_lanes set due_at = now(), arrivals = arrivals + 1 where id = any(array(
      select id from send_lanes where id = any(array(select lane from waiting)) order by id for update
    ))
  `
}
