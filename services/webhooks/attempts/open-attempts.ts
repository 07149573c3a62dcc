import type { Fragment, TransactionSql } from '@app/shared/database/database.ts'
import { floorOf, timeOfFloor } from '@app/shared/mailbox/due-floor.ts'
import type { Want } from '@app/shared/mailbox/mailbox.ts'
import type { DueFloors } from './due-floors.ts'
import { type GivenUp, giveUp } from './give-up.ts'
import { freeAt, notInCall } from './in-call.ts'
import { noteInterrupted } from './interrupted.ts'
import { breakerFailures, type Probing } from './lane-health.ts'
import type { EventKey, Payload, Payloads } from './payloads.ts'
import { pausedByHand, pausedItself } from './paused.ts'
import { type SealedSecrets, signing } from './sign.ts'

/** An attempt that may be made: its number is in its row. */
export interface Attempt extends Probing {
  laneId: string
  organizationId: string
  /** The delivery. */
  id: string
  number: number
  /** Places of the retry schedule that were used up before it. */
  tries: number
  line: string | null
  /** The job that replays it. */
  replayId: string | null
  url: string
  /** Those that sign now, newest first (sign.ts). */
  secrets: SealedSecrets
  /** Monotonic: these, and the url, were read after it. */
  readAt: number
  eventId: string
  /** Null: it was kept for 30 days and is gone. */
  payload: Payload | null
}

interface Row extends Omit<Attempt, 'isProbe' | 'isPaused' | 'id' | 'payload' | 'readAt'>, EventKey {
  /** Null: nothing of the lane is due. */
  id: string | null
  /** Of the subscription; null: it was deleted. */
  status: string | null
  /** Of the lane (due-floors.ts). */
  floor: number
}

/** Open deliveries of ended subscriptions that one claim gives up, in some 0.1 s: all that it begins waits for that. */
const mostGivenUp = 2_000

/** Deliveries among which a probe looks for the one that was tried least. */
const mostPassed = 100

/**
 * Begins attempts of held lanes. URL, status and secrets are read here, so that what was changed or deleted before is never
 * used. Of a lane with an open breaker it takes in turn the oldest delivery and the one that was tried least, whatever their times, so
 * that payloads which the endpoint cannot digest do not keep the breaker open. Of a lane that is more than a minute behind it takes the
 * newest beside the oldest.
 */
export async function openAttempts(
  tx: TransactionSql,
  payloads: Payloads,
  floors: DueFloors,
  wants: Want[],
): Promise<Attempt[]> {
  const probes = new Set<string>()
  const given = wants.map(({ lane, free, heldMs }) => {
    const want = { lane: lane.id, free, held_ms: heldMs, from: floors.from(lane.id) }
    if (lane.failures < breakerFailures) return { ...want, probe: null }
    probes.add(lane.id)
    return { ...want, probe: lane.failures % 2 === 0 ? 'leastTried' : 'oldest' }
  })
  const readAt = performance.now()
  let rows: Row[] = []
  try {
    rows = await begin(tx, given)
  } finally {
    floors.looked(lookedAt(given, rows), performance.now() - readAt)
  }
  const over = new Map(rows.flatMap(({ laneId, status }) => endOf(laneId, status)))
  for (const [lane, why] of over) await giveUp(tx, lane, why, Math.ceil(mostGivenUp / over.size))
  const begun = rows.filter(isBegun)
  const found = await payloads.find(tx, begun)
  return begun.map((row, n) => ({
    ...row,
    payload: found[n] ?? null,
    readAt,
    isProbe: probes.has(row.laneId),
    isPaused: row.status === 'paused',
  }))
}

const endOf = (laneId: string, status: string | null): [string, GivenUp][] =>
  status === null
    ? [[laneId, 'subscription_deleted']]
    : status === 'disabled'
      ? [[laneId, 'subscription_disabled']]
      : []

function lookedAt(given: Given[], rows: Row[]) {
  const floorOf = new Map(rows.map(({ laneId, floor }) => [laneId, floor]))
  return given.map(({ lane, from }) => ({ laneId: lane, from, floor: floorOf.get(lane) ?? null }))
}

const isBegun = (row: Row): row is Row & { id: string } => row.id !== null

interface Given {
  lane: string
  free: number
  held_ms: number
  from: number | null
  probe: string | null
}

/** Of a row of due_deliveries: it is not before the time from which on the lane's are looked through. */
const isFrom = (tx: TransactionSql, from: Fragment) => tx`due_at >= ${timeOfFloor(tx, from)}`

/**
 * Of a row of due_deliveries: nobody is at it, and it was not begun in this hold of the lane `s`. An attempt of this hold may have ended
 * long ago and wait to be recorded, since the database was away.
 */
const isFree = (tx: TransactionSql) =>
  tx`${notInCall(tx)} and (begun_at is null or begun_at < now() - s.held_ms * interval '1 ms')`

/** Of a row of due_deliveries: it is of the lane `s`, free, and among those that are looked through. */
const isPickable = (tx: TransactionSql) =>
  tx`subscription_id = s.lane and ${isFree(tx)} and ${isFrom(tx, tx`s."from"`)}`

/** How long the endpoint of `g.lane` has been probed: since its subscription `s` paused itself, or since its breaker opened. */
const probedMs = (tx: TransactionSql) => tx`
  (extract(epoch from now() - coalesce(
    s.paused_at, (select greatest(probed_since, failing_since) from lanes where id = g.lane), now()
  )) * 1000)::float8
`

const begin = (tx: TransactionSql, given: Given[]) => tx<Row[]>`
  with s as materialized (
    select g.lane, g.free, g.held_ms, g."from", g.probe, s.url, s.status, s.disabled_reason, ${signing(tx, tx`g.lane`)} as secrets,
      case when g.probe is null then 0 else ${probedMs(tx)} end as probed_ms,
      first.due_at < now() - interval '1 minute' as is_behind,
      ${floorOf(tx, tx`first.due_at`)} as floor
    from json_to_recordset(${JSON.stringify(given)}::text::json)
      as g(lane text, free int, held_ms float8, "from" float8, probe text)
    left join lateral (select url, status, disabled_reason, paused_at from subscriptions where id = g.lane limit 1) s on true
    left join lateral (
      select due_at from due_deliveries
      where subscription_id = g.lane and due_at is not null and ${isFrom(tx, tx`g."from"`)} order by due_at limit 1
    ) first on true
  ), picked as materialized (
    select p.id from s cross join lateral (
      (select id from due_deliveries
        where ${isPickable(tx)} and due_at <= now() and s.probe is null
        order by due_at, seq limit case when s.is_behind then (s.free + 1) / 2 else s.free end)
      union
      (select id from due_deliveries
        where ${isPickable(tx)} and due_at <= now() and s.probe is null and s.is_behind
        order by due_at desc, seq desc limit s.free / 2)
      union
      (select id from due_deliveries
        where ${isPickable(tx)} and due_at is not null and s.probe = 'oldest'
        order by due_at, seq limit 1)
      union
      (select id from (
        (select id, due_at, attempts, seq from due_deliveries
          where ${isPickable(tx)} and due_at <= now() and s.probe = 'leastTried'
          order by due_at desc, seq desc limit ${mostPassed})
        union
        (select id, due_at, attempts, seq from due_deliveries
          where ${isPickable(tx)} and due_at is not null and s.probe = 'leastTried'
          order by due_at, seq limit ${mostPassed})
      ) n order by attempts, due_at desc, seq desc limit 1)
    ) p where s.status = 'active' or (${pausedItself(tx)} and s.probe is not null)
  ), free as materialized (
    -- What somebody has in hand is passed over: to wait for it with the lanes locked would stop whoever adds to them.
    select id, attempts, begun_at from due_deliveries
    where id = any(array(select id from picked)) and ${notInCall(tx)} for update skip locked
  ), lost as (
    ${noteInterrupted(tx, tx`free`)}
  ), begun as (
    -- Not joined: each row may then be looked up with all of the ids beside its own, sorted anew.
    update due_deliveries d set attempts = d.attempts + 1, begun_at = now() where d.id = any(array(select id from free))
    returning d.id, d.seq, d.organization_id, d.subscription_id, d.attempts as number, d.tries, d.line, d.event_at, d.event_id, d.replay_id
  )
  select s.lane as lane_id, s.status, s.floor, s.probed_ms, s.url, s.secrets, b.id, b.number, b.tries, b.line, b.replay_id,
    b.organization_id, b.event_id, b.event_at
  from s left join begun b on b.subscription_id = s.lane
  order by b.seq
`

/**
 * When the lanes' next deliveries are due; those of a subscription that was paused by hand are not, and those of one that is
 * disabled or deleted are at once, to be given up. A lane of which not all are looked through is due again when they will be.
 */
export async function nextDue(tx: TransactionSql, floors: DueFloors, laneIds: string[]) {
  const lanes = laneIds.map((id) => ({ id, from: floors.from(id) }))
  const rows = await tx<{ laneId: string; waitMs: number }[]>`
    select l.id as lane_id, greatest(0, extract(epoch from d.at - now()) * 1000)::float8 as wait_ms
    from json_to_recordset(${JSON.stringify(lanes)}::text::json) as l(id text, "from" float8)
    left join lateral (select status, disabled_reason from subscriptions where id = l.id limit 1) s on true
    cross join lateral (
      select min(${freeAt(tx)}) as at from (
        select case when s.status in ('active', 'paused') then o.due_at else now() end as due_at, o.begun_at
        from due_deliveries o where o.subscription_id = l.id and o.due_at is not null and ${isFrom(tx, tx`l."from"`)}
        order by o.due_at, o.seq limit 20
      ) first
    ) d
    where d.at is not null and ${pausedByHand(tx)} is not true
  `
  const waits = new Map(rows.map(({ laneId, waitMs }) => [laneId, waitMs]))
  for (const { id, from } of lanes)
    if (from !== null) waits.set(id, Math.min(waits.get(id) ?? Infinity, floors.restMs(id)))
  return [...waits].map(([laneId, waitMs]) => ({ laneId, waitMs }))
}
