import type { TransactionSql } from '@app/shared/database/database.ts'
import { type Directive, type Done, type Mailbox, startMailbox } from '@app/shared/mailbox/mailbox.ts'
import { isDatabaseAway } from '@app/shared/database/database.ts'
import { OversizedEvent } from '@app/shared/events/events.ts'
import { rounded } from '@app/shared/service/log.ts'
import { Problem } from '@app/shared/api/problem.ts'
import { z } from 'zod'
import type { Core } from '../app.ts'
import { applyStatuses } from './apply-statuses.ts'
import { applyChange } from './changes.ts'
import { createItemFloors, type ItemFloors } from './item-floors.ts'
import { leaveLateToOwner } from './leave-to-owner.ts'
import { recordMessages } from './record-message.ts'
import { isForOwner, type ItemBatch, takeItems, type WaitingItem } from './waiting-items.ts'

/** What became of the items of a lane. */
interface Outcome {
  handled: string[]
  /** Items that tell of something that is not known yet. */
  parked: WaitingItem[]
  /** Items that failed by themselves; they wait in lanes of their own. */
  failed: WaitingItem[]
  /** A failure that is nobody's: database, bus or directory away. The lane waits. */
  away: boolean
}

/** How long a part whose message is unknown waits before each look; then every 5 minutes, for 24 hours. */
const parkScheduleMs = [1_000, 2_000, 5_000, 15_000, 60_000]
const parkEveryMs = 300_000
const parkAttempts = parkScheduleMs.length + (24 * 60 * 60 * 1000) / parkEveryMs

const awayMs = 1_000

/** Works through the parts of callbacks, number by number, many statuses in one statement. */
export function startCallbacks(core: Core, wakeDispatcher: () => void): Mailbox {
  const handlers: Record<WaitingItem['kind'], (item: WaitingItem) => Promise<boolean>> = {
    status: applyStatuses(core),
    message: recordMessages(core),
    change: (item) => applyChange(core, item),
  }
  const floors = createItemFloors()
  return startMailbox<ItemBatch, Outcome>(core, {
    lanes: 'callback_lanes',
    slots: 64,
    // The platform has its answer already: what a callback tells may come a little later for less than half the statements.
    spacingMs: 20,
    capacity: () => 1,
    refill: true,
    next: (tx, wants) => takeItems(tx, floors, wants),
    nextDue: (_tx, laneIds) => Promise.resolve(unsureOf(floors, laneIds)),
    work: async ({ items }) => {
      const outcome: Outcome = { handled: [], parked: [], failed: [], away: false }
      const note = noteItems(core)
      await Promise.all(
        items.map(async (item) => {
          try {
            const known = await handlers[item.kind](item)
            note(item, known ? 'handled' : 'parked')
            if (known) outcome.handled.push(item.seq)
            else outcome.parked.push(item)
          } catch (err) {
            const away = isAway(err)
            const isUnfit = err instanceof z.ZodError || err instanceof OversizedEvent
            note(item, away ? 'away' : isUnfit ? 'unfit' : 'failed')
            core.log[away ? 'warn' : 'error']({ err, ...lineOf(item) }, 'callback item')
            if (away) outcome.away = true
            // Of another shape than the platform's, or too large to be told: it will never fit. The raw callback is kept.
            else if (isUnfit) outcome.handled.push(item.seq)
            else outcome.failed.push(item)
          }
        }),
      )
      return outcome
    },
    settle,
    settled: () => {
      core.relay.wake()
      wakeDispatcher()
    },
    rescue: wakeSleepers,
  })
}

/** Lanes that may have what looks have passed over: they do not sleep before all is looked through again. */
const unsureOf = (floors: ItemFloors, laneIds: string[]) =>
  laneIds.flatMap((laneId) => {
    const waitMs = floors.restMs(laneId)
    return waitMs === null ? [] : [{ laneId, waitMs }]
  })

function noteItems({ meters, log }: Core) {
  const startedAt = performance.now()
  return (item: WaitingItem, outcome: 'handled' | 'parked' | 'failed' | 'unfit' | 'away') => {
    const { kind, attempts, receivedAt } = item
    const isLast = attempts >= parkAttempts && (outcome === 'parked' || outcome === 'failed')
    meters.items.inc({ kind, outcome: isLast ? 'given_up' : outcome })
    if (outcome !== 'handled') return
    meters.itemDelay.observe({ kind }, Math.max(0, Date.now() - receivedAt.getTime()) / 1_000)
    if (!log.isLevelEnabled('debug')) return
    log.debug({ ...lineOf(item), durationMs: rounded(performance.now() - startedAt), outcome }, 'callback item')
  }
}

const lineOf = ({ organizationId, phoneNumberId, kind, part, attempts }: WaitingItem) => ({
  organization: organizationId,
  number: phoneNumberId,
  kind,
  field: part['field'],
  attempt: attempts + 1,
})

/** Who answers that something went wrong is there, and stumbles over this part: the lane does not wait for that to pass. */
const isAway = (err: unknown) =>
  isDatabaseAway(err) || (err instanceof Problem && err.status >= 500 && err.failure !== 'internal_error')

async function settle(tx: TransactionSql, done: Done<ItemBatch, Outcome>[]): Promise<Directive[]> {
  const outcomes = done.flatMap(({ outcome }) => (outcome ? [outcome] : []))
  const handled = outcomes.flatMap((outcome) => outcome.handled)
  const waiting = done.flatMap(({ item, outcome }) =>
    [...(outcome?.parked ?? []), ...(outcome?.failed ?? [])].map((one) => ({
      ...one,
      stays: laneOf(one) === item.laneId,
    })),
  )
  const givenUp = waiting.filter(({ attempts }) => attempts >= parkAttempts).map(({ seq }) => seq)
  const over = [...handled, ...givenUp]
  if (over.length > 0) await tx`delete from callback_items where seq = any(${over}::bigint[])`
  await setApart(
    tx,
    waiting.filter(({ attempts }) => attempts < parkAttempts),
  )
  return done.map(({ item, outcome }) => ({ laneId: item.laneId, ...waitOf(item, outcome) }))
}

/** A lane of parked parts sleeps until their next look, or until another one comes to them; a number's lane goes on. */
function waitOf({ laneId }: ItemBatch, outcome: Outcome | null) {
  if (!outcome) return { waitMs: 0 }
  if (outcome.away) return { waitMs: awayMs }
  const staying = [...outcome.parked, ...outcome.failed].filter((item) => laneOf(item) === laneId)
  if (staying.length === 0) return { waitMs: null }
  return { waitMs: Math.min(...staying.map(({ attempts }) => waitAfter(attempts))), untilArrival: true }
}

const waitAfter = (attempts: number) => parkScheduleMs[attempts] ?? parkEveryMs

const laneOf = ({ organizationId, part, seq }: WaitingItem) =>
  `${organizationId}:${typeof part['id'] === 'string' ? part['id'] : seq}`

/**
 * Moves parts that have to wait into lanes of their own, so that nothing waits behind them. One that is there already is no
 * arrival.
 */
async function setApart(tx: TransactionSql, waiting: (WaitingItem & { stays: boolean })[]) {
  if (waiting.length === 0) return
  const rows = waiting.map((item) => ({
    seq: item.seq,
    lane: laneOf(item),
    grp: item.organizationId,
    wait_ms: waitAfter(item.attempts),
    stays: item.stays,
  }))
  await tx`
    with u as (
      select * from json_to_recordset(${JSON.stringify(rows)}::text::json) as u(seq bigint, lane text, grp text, wait_ms float8, stays boolean)
    ), moved as (
      update callback_items i set lane = u.lane, attempts = i.attempts + 1 from u where i.seq = u.seq
    )
    insert into callback_lanes as l (id, grp, due_at)
    select lane, min(grp), now() + min(wait_ms) * interval '1 ms' from u where not stays group by lane order by lane
    on conflict (id) do update set due_at = least(l.due_at, excluded.due_at), arrivals = l.arrivals + 1
  `
}

/** Also leaves to others what is theirs, and clears away the lanes of one part that are empty. */
export async function wakeSleepers(sql: Core['sql']) {
  await leaveLateToOwner(sql)
  const { count } = await sql`
    update callback_lanes l set due_at = now()
    where l.due_at is null and l.held_until < now() and exists (
      select from callback_items i join senders s on s.attached and ${isForOwner(sql)} and (
        s.phone_number_id = i.item -> 'metadata' ->> 'phone_number_id'
        or i.item -> 'metadata' ->> 'phone_number_id' is null and s.business_account_id = i.item ->> 'entryId'
      )
      where i.lane = l.id
    )
  `
  await sql`
    delete from callback_lanes l where due_at is null and held_until < now() and id like '%:%'
      and not exists (select from callback_items where lane = l.id)
  `
  return count
}
