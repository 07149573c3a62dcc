import type { Sql, TransactionSql } from './database.ts'
import { claimLanes, findDueGroups } from './claim-lanes.ts'
import { type Lane, type Release, renewLanes } from './lanes.ts'
import { type Loop, startLoop } from './loop.ts'
import { type Active, type Finished, type Recorded, recordTurn } from './mailbox-turn.ts'
import { watchMailbox } from './metrics/mailbox-readings.ts'
import type { Pace } from './pace.ts'
import type { DataService } from './service.ts'

/**
 * Work that waits in Postgres, in lanes. What is claimed is a lane (a conversation, a number, a subscription), never an
 * item; its holder alone works on it, so order, caps and waits are the holder's own business, without a count in SQL.
 *
 *   asleep (due_at null) ── an item arrives ──▶ due ── claimed ──▶ held ── its items are done ──▶ asleep | due | due later
 *                                                ▲                  │
 *                                                └── lease lapsed ──┘   (the holder died: the next one finds what it left)
 *
 * What an item needs is written before its work begins (`next`) and what came of it after (`settle`), each in one
 * transaction for many items. A crash in between is found by the next holder: `next` sees an item that was begun.
 */
interface CommonOptions<Item extends { laneId: string }, Outcome> {
  /** The table of lanes, shaped as lanes.ts says. */
  lanes: string
  /** How long a lane is held without a renewal; work never starts later than half of it. */
  leaseMs?: number
  /** Items in work at a time, in this process. */
  slots: number
  /** Lanes that one group may get in one claim; groups take turns. */
  perGroup?: number
  /** Charges each claimed lane to its group's pace. */
  pace?: Pace
  /** Share of the slots that lanes with failures may hold, from 0 to 1. */
  failingShare?: number
  /** Items that a lane may have in work at a time. */
  capacity: (lane: Lane) => number
  /** Picks at most `free` items of each lane and records that their work begins. */
  next: (tx: TransactionSql, wants: Want[]) => Promise<Item[]>
  /** The work. Must not throw: what it throws is handled as if the process had died. */
  work: (item: Item, lane: Lane) => Promise<Outcome>
  /** Runs after each commit of `settle`: wake the relay. */
  settled?: () => void
  /** Wakes lanes that sleep beside an open item; expected to find none. Runs once a minute. */
  rescue?: (sql: Sql) => Promise<number>
}

/** How outcomes are recorded, in a transaction with whatever the lanes do next. */
interface TurnOptions<Item extends { laneId: string }, Outcome> {
  /** Whether a lane that is held takes its next items at once, or is released after each item and claimed again. */
  refill: boolean
  /** When the next item of a lane is due that has none due now: asked for lanes that are given back without a `waitMs`. An arrival is earlier. */
  nextDue?: (tx: TransactionSql, laneIds: string[]) => Promise<Array<{ laneId: string; waitMs: number }>>
  /** Records outcomes, and says what the lanes do next. An `outcome` of null: the work was not started (too late in the lease). */
  settle: (tx: TransactionSql, done: Done<Item, Outcome>[]) => Promise<Directive[]>
}

/** For lanes with one item at a time that are given back after each: outcomes and lanes in a statement of the owner's own. */
interface FinishOptions<Item extends { laneId: string }, Outcome> {
  /** Records outcomes, and gives back their lanes and those that were found `empty`; answers whether one is due at once. */
  finish: (ended: { done: Done<Item, Outcome>[]; empty: Lane[] }) => Promise<{ isDue: boolean }>
}

export type MailboxOptions<Item extends { laneId: string }, Outcome> = CommonOptions<Item, Outcome> &
  (TurnOptions<Item, Outcome> | FinishOptions<Item, Outcome>)

/** A mailbox that records in turns. */
export type TurningOptions<Item extends { laneId: string }, Outcome> = CommonOptions<Item, Outcome> &
  TurnOptions<Item, Outcome>

/** A lane that may take items. Its `failures` and `pacedMs` are what directives of this hold said last. */
export interface Want {
  lane: Lane
  free: number
  /** Claimed just now: an item found begun was begun by a holder that died. Else it may be in our own work. */
  fresh: boolean
}

export interface Done<Item, Outcome> {
  item: Item
  /** As in `Want`. */
  lane: Lane
  outcome: Outcome | null
}

/**
 * What a lane does when its items in work are done. Without one, or with a `waitMs` of null, it takes the next item (with
 * `refill`) or sleeps until an arrival. What a directive leaves out stays as an earlier one of the same hold said.
 */
export interface Directive extends Partial<Omit<Release, 'lane'>> {
  laneId: string
}

export interface Mailbox<Item = never> {
  /** Looks for due lanes now; call it after every commit that made one due. */
  wake: () => void
  /** Takes free slots, at most `most`, for items that are claimed and begun by the statement that adds them; answers how many. */
  reserve: (most: number) => number
  /** Works on what such a statement has begun, and gives its slots back: call it whatever came of the statement. */
  adopt: (reserved: number, begun: Begun<Item>[]) => void
  /** Items in work. */
  busy: () => number
  /** Claims no more, waits for what is in work, and records it. */
  stop: () => Promise<void>
}

/** An item and its lane, claimed and begun by the statement that added the item. */
export interface Begun<Item> {
  item: Item
  lane: Lane
  /** Monotonic time from before that statement: the lease is not older. */
  heldSince: number
}

/** Everything a running mailbox knows. */
interface Box<Item extends { laneId: string }, Outcome> {
  app: Pick<DataService, 'sql' | 'log' | 'probes'>
  options: MailboxOptions<Item, Outcome>
  leaseMs: number
  active: Map<string, Active>
  /** Worked on, not recorded yet. */
  done: Finished<Item, Outcome>[]
  /** Claimed, and found to hold nothing. */
  emptied: Active[]
  busy: number
  stopped: boolean
  /** The last claim had no room for all, or for none: the next one has to wait for a settlement. */
  full: boolean
  /** Something may have come into a lane that is held here. */
  arrived: boolean
  afterGroup: string
  claiming: Loop
  settling: Loop
  watch: ReturnType<typeof watchMailbox>
}

const claimLimit = 128
const settleLimit = 256
/** Claims and settlements gather for that long under load. */
const spacingMs = 5
const busyPollMs = 250
const idlePollMs = 1_000
/** A group whose pace is used up has its next token soon. */
const pacePollMs = 25

export function startMailbox<Item extends { laneId: string }, Outcome>(
  app: Pick<DataService, 'sql' | 'log' | 'probes'>,
  options: MailboxOptions<Item, Outcome>,
): Mailbox<Item> {
  const { leaseMs = 30_000 } = options
  const refill = 'refill' in options && options.refill
  const box: Box<Item, Outcome> = {
    app,
    options,
    leaseMs,
    active: new Map(),
    done: [],
    emptied: [],
    busy: 0,
    stopped: false,
    full: false,
    arrived: false,
    afterGroup: '',
    claiming: startLoop(app.log, `${options.lanes} claim`, () => claim(box), { spacingMs }),
    settling: startLoop(app.log, `${options.lanes} settle`, () => settle(box), { spacingMs }),
    watch: watchMailbox(app, options.lanes, () => ({ items: box.busy, lanes: box.active.size })),
  }
  const wakeSettling = () => {
    box.arrived = refill
    if (box.active.size > 0) box.settling.wake()
  }
  const renewal = setInterval(wakeSettling, Math.min(idlePollMs, leaseMs / 6))
  const rescue = setInterval(() => void rescueLanes(box), 60_000)
  box.claiming.wake()
  return {
    wake() {
      box.claiming.wake()
      if (refill) wakeSettling()
    },
    busy: () => box.busy,
    reserve(most) {
      const free = box.stopped || box.done.length > settleLimit ? 0 : options.slots - box.busy
      const reserved = Math.max(0, Math.min(most, free))
      box.busy += reserved
      return reserved
    },
    adopt(reserved, begun) {
      box.busy -= reserved
      for (const { lane, heldSince } of begun) hold(box, lane, heldSince)
      begin(
        box,
        begun.map(({ item }) => item),
      )
    },
    async stop() {
      box.stopped = true
      clearInterval(rescue)
      await box.claiming.stop()
      while (box.busy > 0 || box.emptied.length > 0) await new Promise((resolve) => setTimeout(resolve, 10))
      clearInterval(renewal)
      await box.settling.stop()
    },
  }
}

/** One claim; answers after how many ms to look again. */
async function claim<Item extends { laneId: string }, Outcome>(box: Box<Item, Outcome>): Promise<number> {
  const { app, options, leaseMs, active } = box
  const free = options.slots - box.busy
  if (box.stopped) return Infinity
  box.full = free <= 0 || box.done.length > settleLimit
  if (box.full) return busyPollMs
  const startedAt = performance.now()
  const failing = [...active.values()].filter(({ lane }) => lane.failures > 0).length
  const { failingShare } = options
  const failingLimit = failingShare === undefined ? null : Math.floor(options.slots * failingShare) - failing
  const { groups, last } = await findDueGroups(app.sql, options.lanes, box.afterGroup)
  box.afterGroup = last
  box.full = failingLimit !== null && failingLimit <= 0
  if (groups.length === 0) return box.busy > 0 ? busyPollMs : idlePollMs
  const { lanes, items, paced } = await app.sql.begin(async (tx) => {
    const claimed = await claimLanes(tx, {
      table: options.lanes,
      leaseMs,
      perGroup: options.perGroup ?? 16,
      limit: Math.min(free, claimLimit),
      failingLimit,
      pace: options.pace,
      groups,
    })
    const share = Math.max(1, Math.floor(free / Math.max(1, claimed.lanes.length)))
    const wants = claimed.lanes.map((lane) => ({ lane, free: Math.min(options.capacity(lane), share), fresh: true }))
    return { ...claimed, items: wants.length > 0 ? await options.next(tx, wants) : [] }
  })
  for (const lane of lanes) hold(box, lane, startedAt)
  begin(box, items)
  const empty = lanes.flatMap(({ id }) => active.get(id) ?? []).filter(({ inWork }) => inWork === 0)
  box.emptied.push(...empty)
  if (empty.length > 0) box.settling.wake()
  // More lanes, or more groups behind these, may be due.
  if (lanes.length >= Math.min(free, claimLimit) || last !== '') return 0
  if (paced) return pacePollMs
  return box.busy > 0 ? busyPollMs : idlePollMs
}

const hold = <Item extends { laneId: string }, Outcome>(
  { active }: Box<Item, Outcome>,
  lane: Lane,
  heldSince: number,
) => active.set(lane.id, { lane, inWork: 0, heldSince, release: { waitMs: null } })

function begin<Item extends { laneId: string }, Outcome>(box: Box<Item, Outcome>, items: Item[]) {
  for (const item of items) {
    const owner = box.active.get(item.laneId)
    if (!owner) continue
    owner.inWork++
    box.busy++
    void run(box, item, owner)
  }
}

async function run<Item extends { laneId: string }, Outcome>(box: Box<Item, Outcome>, item: Item, owner: Active) {
  const { lane } = owner
  try {
    // A process that was frozen meanwhile may have lost the lane: past half the lease nothing begins.
    const late = performance.now() - owner.heldSince > box.leaseMs / 2
    const outcome = late ? null : await box.options.work(item, lane)
    box.done.push({ item, lane, owner, outcome })
  } catch (err) {
    // As after a crash: the lane is left to its lease, and the next holder finds the item begun.
    box.app.log.error({ err, lane: lane.id }, 'work threw')
    drop(box, owner)
    box.busy--
  }
  box.settling.wake()
}

function drop<Item extends { laneId: string }, Outcome>({ active }: Box<Item, Outcome>, owner: Active) {
  if (active.get(owner.lane.id) === owner) active.delete(owner.lane.id)
}

/** Records what is done, in one transaction with the release or refill of its lanes, and tops up lanes that have room. */
async function settle<Item extends { laneId: string }, Outcome>(box: Box<Item, Outcome>): Promise<number> {
  await renew(box)
  const batch = box.done.slice(0, settleLimit)
  const empty = [...box.emptied]
  const roomy = box.arrived && !box.stopped ? [...box.active.values()].filter((owner) => hasRoom(box, owner)) : []
  box.arrived = false
  if (batch.length === 0 && empty.length === 0 && roomy.length === 0) return Infinity
  const recorded = await recordBatch(box, batch, empty, roomy)
  box.done.splice(0, batch.length)
  box.emptied.splice(0, empty.length)
  box.busy -= batch.length
  box.watch.settled(batch.length)
  for (const { owner } of batch) owner.inWork--
  for (const [owner, { waitMs: _, ...lane }] of recorded.releases) Object.assign(owner.lane, lane)
  for (const [owner, release] of recorded.releases) owner.release = release
  for (const [owner, arrivals] of recorded.arrivals) owner.lane.arrivals = arrivals
  for (const owner of recorded.released) drop(box, owner)
  begin(box, recorded.items)
  if (batch.length > 0) box.options.settled?.()
  if (recorded.isDue || box.full) box.claiming.wake()
  // What was done meanwhile has woken this loop again.
  return box.done.length >= settleLimit ? 0 : Infinity
}

async function recordBatch<Item extends { laneId: string }, Outcome>(
  box: Box<Item, Outcome>,
  batch: Finished<Item, Outcome>[],
  empty: Active[],
  roomy: Active[],
): Promise<Recorded<Item>> {
  const { options, app } = box
  if ('finish' in options) {
    const { isDue } = await options.finish({ done: batch, empty: empty.map(({ lane }) => lane) })
    return {
      items: [],
      released: [...batch.map(({ owner }) => owner), ...empty],
      releases: new Map(),
      isDue,
      arrivals: [],
    }
  }
  const turn = { batch, empty, roomy, options, freeSlots: options.slots - box.busy + batch.length }
  const mayGoOn = (owner: Active) => !box.stopped && box.active.get(owner.lane.id) === owner
  return app.sql.begin((tx) => recordTurn(tx, turn, mayGoOn))
}

const hasRoom = <Item extends { laneId: string }, Outcome>({ options }: Box<Item, Outcome>, owner: Active) =>
  owner.release.waitMs === null && owner.inWork > 0 && owner.inWork < options.capacity(owner.lane)

/** Lanes with long work keep their lease; those that another holder took meanwhile are given up. */
async function renew<Item extends { laneId: string }, Outcome>(box: Box<Item, Outcome>) {
  const { app, options, leaseMs } = box
  const now = performance.now()
  const aging = [...box.active.values()].filter(({ heldSince }) => now - heldSince > leaseMs / 3)
  if (aging.length === 0) return
  const held = await renewLanes(
    app.sql,
    options.lanes,
    leaseMs,
    aging.map(({ lane }) => lane),
  )
  for (const owner of aging) {
    const heldUntil = held.get(owner.lane.id)
    if (heldUntil === undefined) drop(box, owner)
    else {
      owner.lane.heldUntil = heldUntil
      owner.heldSince = now
    }
  }
}

async function rescueLanes<Item extends { laneId: string }, Outcome>({ app, options, watch }: Box<Item, Outcome>) {
  try {
    const count = (await options.rescue?.(app.sql)) ?? 0
    watch.rescued(count)
    if (count > 0) app.log.error({ count, lanes: options.lanes }, 'lanes slept beside open items')
  } catch (err) {
    app.log.warn({ err, lanes: options.lanes }, 'rescue')
  }
}
