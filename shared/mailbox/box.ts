import type { Lane } from './lanes.ts'
import type { Loop } from '../work/loop.ts'
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
  stopped: boolean
  /** The last claim had no room for all, or for none: the next one has to wait for a settlement. */
  full: boolean
  /** Something may have come into a lane that is held here. */
  arrived: boolean
  afterGroup: string
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

/** Slots for more work; none while the records are behind. */
export const freeSlots = <Item extends { laneId: string }, Outcome>(box: Box<Item, Outcome>): number =>
  box.stopped || box.done.length > settleLimit ? 0 : Math.max(0, box.options.slots - box.busy)

/** From now on the lane is held here. */
export const hold = <Item extends { laneId: string }, Outcome>(
  { active }: Box<Item, Outcome>,
  lane: Lane,
  heldSince: number,
) => active.set(lane.id, { lane, inWork: 0, heldSince, release: { waitMs: null } })

/** Begins the work on items whose lanes are held here. */
export function begin<Item extends { laneId: string }, Outcome>(box: Box<Item, Outcome>, items: Item[]) {
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

/** Holds the lane no more. */
export function drop<Item extends { laneId: string }, Outcome>({ active }: Box<Item, Outcome>, owner: Active) {
  if (active.get(owner.lane.id) === owner) active.delete(owner.lane.id)
}
