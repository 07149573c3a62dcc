import type { Sql, TransactionSql } from '../database/database.ts'
import type { Lane, Release } from './lanes.ts'
import { startLoop } from '../work/loop.ts'
import { begin, type Box, hold, reserveSlots } from './box.ts'
import { claim } from './claim.ts'
import { dueFloor } from './due-floor.ts'
import { noteOutage } from './outage.ts'
import { settle } from './settle.ts'
import { watchMailbox } from '../metrics/mailbox-readings.ts'
import type { Pace } from './pace.ts'
import type { DataService } from '../service/service.ts'

/**
 * A work queue in Postgres, in lanes. A process claims a lane (a conversation, a number, a subscription) for a lease, never an
 * item. Only the holder works on the lane, so it decides about order, caps and waits by itself, without a count in SQL.
 *
 *   asleep (due_at null) ── an item arrives ──▶ due ── claimed ──▶ held ── its items are done ──▶ asleep | due | due later
 *                                                ▲                  │
 *                                                └── lease lapsed ──┘   (the holder died: the next one finds what it left)
 *
 * Slots are shared between tenants: the tenant of a lane is its group, or the one that the pace of its group names. A tenant has at most
 * four times as many slots as are free (rooms.ts), so that nobody fills them all, be it with many lanes, long ones or slow work.
 *
 * `next` records that items are begun, before their work; `settle` (or `finish`) records their outcomes. Each is one transaction for
 * many items. After a crash in between, `next` of the next holder finds an item that was begun already: the work may have been done. A
 * commit whose answer is lost is no crash: Postgres is asked whether it was committed (`beginSurely`), and the work goes on.
 */
interface CommonOptions<Item extends { laneId: string }, Outcome> {
  /** The table of lanes, shaped as lanes.ts says. */
  lanes: string
  /** How long a lane is held without a renewal, 9 s by default; work never starts later than half of it. */
  leaseMs?: number
  /** Items in work at a time, in this process. */
  slots: number
  /** Items in work that need no slot any more, such as those that merely wait: so many others come into work beside them. */
  beside?: () => number
  /** How long claims, and settlements, gather under load: the longer, the fewer and the later. */
  spacingMs?: number
  /** The same of settlements, where they may gather for longer than claims. */
  settleSpacingMs?: number
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
  /**
   * The work; null: it was not begun after all. Must not throw: what it throws is handled as if the process had died. What has to
   * wait before it really begins, such as for a connection, asks `mayBegin` then.
   */
  work: (item: Item, lane: Lane, mayBegin: () => boolean) => Promise<Outcome | null>
  /** Runs after each commit of `settle`: wake the relay. */
  settled?: () => void
  /** Wakes lanes that sleep beside an open item; expected to find none. Runs once a minute. */
  rescue?: (sql: Sql) => Promise<number>
}

/** Locks all lanes that a settlement records or gives back, whoever holds them by now. */
export type LockLanes = () => Promise<unknown>

/** How outcomes are recorded, in a transaction with whatever the lanes do next. */
interface TurnOptions<Item extends { laneId: string }, Outcome> {
  /** Whether a lane that is held takes its next items at once, or is released after each item and claimed again. */
  refill: boolean
  /** When lanes without a due item have their next one; asked when they are given back without a `waitMs`. An arrival makes them due earlier. */
  nextDue?: (tx: TransactionSql, laneIds: string[]) => Promise<Array<{ laneId: string; waitMs: number }>>
  /**
   * Records outcomes, and says what the lanes do next. An `outcome` of null: the work was not begun (or it was too late in the lease).
   * Call `lockLanes` before a statement that locks some of these lanes: what comes after locks others, and all lock them in one order.
   */
  settle: (tx: TransactionSql, done: Done<Item, Outcome>[], lockLanes: LockLanes) => Promise<Directive[]>
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
  /** Not less than the time since the claim: an item that was begun earlier is not in our own work. */
  heldMs: number
}

export interface Done<Item, Outcome> {
  item: Item
  /** As in `Want`. */
  lane: Lane
  outcome: Outcome | null
}

/**
 * What a lane does when its items in work are done. Without one, or with a `waitMs` of null, it takes the next item (with
 * `refill`) or sleeps until an arrival. What a directive leaves out stays as an earlier one of the same hold said. `failures`
 * stand in the lane's row from then on, the rest when it is given back.
 */
export interface Directive extends Partial<Omit<Release, 'lane'>> {
  laneId: string
}

export interface Mailbox<Item = never> {
  /** Looks for due lanes now; call it after every commit that made one due. */
  wake: () => void
  /**
   * Takes free slots for items that are claimed and begun by the statement that adds them, each given by its tenant; answers
   * which of them got one.
   */
  reserve: (tenants: string[]) => boolean[]
  /** Works on what such a statement has begun, and gives its slots back: call it whatever came of the statement. */
  adopt: (reserved: number, begun: Begun<Item>[]) => void
  /** Items in work. */
  busy: () => number
  /** Before it no lane was due lately (due-floor.ts), for statements that ask whether any is; null: that is asked cheaply. */
  dueFrom: () => number | null
  /** Claims no more, waits for what is in work, and records it. */
  stop: () => Promise<void>
}

/** An item and its lane, claimed and begun by the statement that added the item. */
export interface Begun<Item> {
  item: Item
  lane: Lane
  tenant: string
  /** Monotonic time from before that statement: the lease is not older. */
  heldSince: number
}

/** How often held lanes are checked: for leases to renew, and for items that arrived without a wake-up. */
const lookMs = 1_000

/** The work of a holder that died goes on within ten seconds. */
const usualLeaseMs = 9_000

export function startMailbox<Item extends { laneId: string }, Outcome>(
  app: Pick<DataService, 'sql' | 'log' | 'probes'>,
  options: MailboxOptions<Item, Outcome>,
): Mailbox<Item> {
  const { leaseMs = usualLeaseMs, spacingMs = 5, settleSpacingMs = spacingMs } = options
  const refill = 'refill' in options && options.refill
  const box: Box<Item, Outcome> = {
    app,
    options,
    leaseMs,
    active: new Map(),
    done: [],
    emptied: [],
    busy: 0,
    inWork: new Map(),
    heldBack: new Set(),
    stopped: false,
    full: false,
    arrived: false,
    afterGroup: '',
    floor: dueFloor(),
    awaySince: null,
    patientUntil: -Infinity,
    claiming: startLoop(app.log, `${options.lanes} claim`, () => noteOutage(box, () => claim(box)), { spacingMs }),
    settling: startLoop(app.log, `${options.lanes} settle`, () => noteOutage(box, () => settle(box)), {
      spacingMs: settleSpacingMs,
    }),
    watch: watchMailbox(app, options.lanes, () => ({ items: box.busy, lanes: box.active.size })),
  }
  const wakeSettling = () => {
    box.arrived = refill
    if (box.active.size > 0) box.settling.wake()
  }
  const renewal = setInterval(wakeSettling, Math.min(lookMs, leaseMs / 6))
  const rescue = setInterval(() => void rescueLanes(box), 60_000)
  box.claiming.wake()
  return {
    wake() {
      box.claiming.wake()
      if (refill) wakeSettling()
    },
    busy: () => box.busy,
    dueFrom: box.floor.known,
    reserve: (tenants) => reserveSlots(box, tenants),
    adopt(reserved, begun) {
      box.busy -= reserved
      for (const { lane, tenant, heldSince } of begun) hold(box, lane, tenant, heldSince)
      const items = begun.map(({ item }) => item)
      begin(box, items)
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

async function rescueLanes<Item extends { laneId: string }, Outcome>({ app, options, watch }: Box<Item, Outcome>) {
  try {
    const count = (await options.rescue?.(app.sql)) ?? 0
    watch.rescued(count)
    if (count > 0) app.log.error({ count, lanes: options.lanes }, 'lanes slept although they had open work')
  } catch (err) {
    app.log.warn({ err, lanes: options.lanes }, 'sleeping lanes cannot be checked for open work')
  }
}
