import type { Lane } from './lanes.ts'
import type { Loop } from '../work/loop.ts'
import type { DueFloor } from './due-floor.ts'
import { roomFor } from './rooms.ts'
import type { Active, Finished } from './turn.ts'
import type { MailboxOptions } from './mailbox.ts'
import type { watchMailbox } from '../metrics/mailbox-readings.ts'
import type { DataService } from '../service/service.ts'

/** Everything a running mailbox knows. */
export interface Box<Item extends { laneId: string }, Outcome> {
  app: Pick<DataService, 'sql' | 'log' | 'probes'>
  options: MailboxOptions<Item, Outcome>
  leaseMs: number
  active: Map<string, Active>
  /** Worked on, not recorded yet. */
  done: Finished<Item, Outcome>[]
  /** Claimed, and found to hold nothing. */
  emptied: Active[]
  busy: number
  /** Items in work by tenant; reserved slots are not among them. */
  inWork: Map<string, number>
  /** Tenants that may have more due lanes than they had room for. */
  heldBack: Set<string>
  stopped: boolean
  /** The last claim had no free slots, or may have left failing lanes: a settlement has to wake the next one. */
  full: boolean
  /** Something may have come into a lane that is held here. */
  arrived: boolean
  afterGroup: string
  floor: DueFloor
  /** Monotonic: since when the database is away, as far as this process knows. */
  awaySince: number | null
  /** Monotonic: until then lanes whose leases have lapsed are left to their holders. */
  patientUntil: number
  claiming: Loop
  settling: Loop
  watch: ReturnType<typeof watchMailbox>
}

/** Items that are recorded in one transaction. */
export const settleLimit = 256

/** Slots that nobody has; less than none where items that needed none need them again. */
export const leftSlots = <Item extends { laneId: string }, Outcome>({ options, busy }: Box<Item, Outcome>): number =>
  options.slots + (options.beside?.() ?? 0) - busy

/** Slots for more work; none while the records are behind. */
export const freeSlots = <Item extends { laneId: string }, Outcome>(box: Box<Item, Outcome>): number =>
  box.stopped || box.done.length > settleLimit ? 0 : Math.max(0, leftSlots(box))

/** Held lanes that have failures. */
export const failingOf = <Item extends { laneId: string }, Outcome>({ active }: Box<Item, Outcome>): Active[] =>
  [...active.values()].filter(({ lane }) => lane.failures > 0)

/** How many lanes with failures may be held; any number, where a mailbox makes no difference between lanes. */
export const mostFailing = <Item extends { laneId: string }, Outcome>({ options }: Box<Item, Outcome>): number =>
  Math.floor(options.slots * (options.failingShare ?? Infinity))

/** How many more items the tenant may take. */
export const roomOf = <Item extends { laneId: string }, Outcome>(box: Box<Item, Outcome>, tenant: string): number =>
  roomFor(freeSlots(box), box.inWork.get(tenant) ?? 0)

/** Takes slots for items of these tenants; answers which of them got one. */
export function reserveSlots<Item extends { laneId: string }, Outcome>(
  box: Box<Item, Outcome>,
  tenants: string[],
): boolean[] {
  const rooms = new Map(tenants.map((tenant) => [tenant, roomOf(box, tenant)]))
  return tenants.map((tenant) => {
    const room = rooms.get(tenant) ?? 0
    if (room === 0 || freeSlots(box) === 0) return false
    rooms.set(tenant, room - 1)
    box.busy++
    return true
  })
}

/** From now on the lane is held here. */
export const hold = <Item extends { laneId: string }, Outcome>(
  { active }: Box<Item, Outcome>,
  lane: Lane,
  tenant: string,
  heldSince: number,
) => active.set(lane.id, { lane, tenant, inWork: 0, heldSince, claimedAt: heldSince, release: { waitMs: null } })

/** Begins the work on items whose lanes are held here. */
export function begin<Item extends { laneId: string }, Outcome>(box: Box<Item, Outcome>, items: Item[]) {
  for (const item of items) {
    const owner = box.active.get(item.laneId)
    if (!owner) continue
    count(box, owner, 1)
    void run(box, item, owner)
  }
}

/** Counts items that come into work, or leave it. */
export function count<Item extends { laneId: string }, Outcome>(
  box: Box<Item, Outcome>,
  owner: Active,
  change: 1 | -1,
) {
  owner.inWork += change
  box.busy += change
  const inWork = (box.inWork.get(owner.tenant) ?? 0) + change
  if (inWork === 0) box.inWork.delete(owner.tenant)
  else box.inWork.set(owner.tenant, inWork)
}

async function run<Item extends { laneId: string }, Outcome>(box: Box<Item, Outcome>, item: Item, owner: Active) {
  const { lane } = owner
  // A process that was frozen meanwhile may have lost the lane: past half the lease nothing begins.
  const mayBegin = () => performance.now() - owner.heldSince <= box.leaseMs / 2
  try {
    const outcome = mayBegin() ? await box.options.work(item, lane, mayBegin) : null
    box.done.push({ item, lane, owner, outcome })
  } catch (err) {
    // As after a crash: the lane is left to its lease, and the next holder finds the item begun.
    box.app.log.error({ err, lane: lane.id }, 'work on a lane failed: the lane waits for the end of its lease')
    drop(box, owner)
    count(box, owner, -1)
  }
  box.settling.wake()
}

/** Holds the lane no more. */
export function drop<Item extends { laneId: string }, Outcome>({ active }: Box<Item, Outcome>, owner: Active) {
  if (active.get(owner.lane.id) === owner) active.delete(owner.lane.id)
}
