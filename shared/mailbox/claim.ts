import { claimLanes, findDueGroups } from './claim-lanes.ts'
import { beginSurely } from '../database/begin-surely.ts'
import { begin, type Box, failingOf, freeSlots, hold, mostFailing, roomOf } from './box.ts'
import type { TransactionSql } from '../database/database.ts'
import { isAnyHeld, type Lane } from './lanes.ts'
import type { Want } from './mailbox.ts'
import { mayTakeLapsed, noteSlow } from './outage.ts'
import { roomFor } from './rooms.ts'

const claimLimit = 128
const busyPollMs = 250
const idlePollMs = 1_000
/** A group whose pace is used up has its next token soon. */
const pacePollMs = 25

/** One claim; answers after how many ms to look again. */
export async function claim<Item extends { laneId: string }, Outcome>(box: Box<Item, Outcome>): Promise<number> {
  const { app, options, leaseMs, active } = box
  const free = freeSlots(box)
  box.full = free === 0
  if (box.full) return busyPollMs
  const startedAt = performance.now()
  const failingRoom = failingRoomOf(box)
  const perGroup = options.perGroup ?? 16
  if (box.afterGroup === '') box.heldBack.clear()
  const { groups, last, from } = await look(box)
  box.afterGroup = last
  const lapsedToo = mayTakeLapsed(box, startedAt)
  box.full = failingRoom !== null && failingRoom.limit <= 0
  if (groups.length === 0) return box.busy > 0 ? busyPollMs : idlePollMs
  const take = async (tx: TransactionSql) => {
    const claimed = await claimLanes(tx, {
      table: options.lanes,
      leaseMs,
      perGroup,
      room: { limit: Math.min(free, claimLimit), of: (tenant) => roomOf(box, tenant) },
      failingRoom,
      pace: options.pace,
      groups: fromAnywhere(groups),
      lapsedToo,
      from,
    })
    const wants = wantsOf(box, claimed, free)
    return { ...claimed, items: wants.length > 0 ? await options.next(tx, wants) : [] }
  }
  const { lanes, items, paced, tenants, heldBack } = await beginSurely(app.sql, take, {
    isThere: (claimed) => isAnyHeld(app.sql, options.lanes, claimed.lanes),
  })
  noteSlow(box, startedAt)
  for (const tenant of heldBack) box.heldBack.add(tenant)
  for (const lane of lanes) hold(box, lane, tenants.get(lane.group) ?? lane.group, startedAt)
  // Each time they get a part of their share: when these are settled, more may be due.
  box.full ||= failingRoom !== null && lanes.some(({ failures }) => failures > 0)
  begin(box, items)
  const empty = lanes.flatMap(({ id }) => active.get(id) ?? []).filter(({ inWork }) => inWork === 0)
  box.emptied.push(...empty)
  if (empty.length > 0) box.settling.wake()
  // More lanes, or more groups behind these, may be due.
  if (lanes.length >= Math.min(free, claimLimit) || last !== '') return 0
  // Their work was settled meanwhile, before anybody knew that they have more: no later settlement will look.
  if (heldBack.some((tenant) => !box.inWork.has(tenant))) return 0
  if (paced) return pacePollMs
  // A group that got as many lanes as it may can have more due: if those were empty, no settlement would look again.
  if (hasMost(lanes, perGroup)) return 0
  // Before its tokens fill the burst again: tokens beyond the burst are lost.
  if (options.pace && lanes.length > 0) return options.pace.burstMs / 2
  return box.busy > 0 ? busyPollMs : idlePollMs
}

/** Groups with due lanes, in all or from where a look begins now (due-floor.ts). */
async function look<Item extends { laneId: string }, Outcome>(box: Box<Item, Outcome>) {
  const { app, options, afterGroup } = box
  const [from, begunAt] = [box.floor.from(), performance.now()]
  let floor: number | null = null
  try {
    const found = await findDueGroups(app.sql, options.lanes, { after: afterGroup, from })
    floor = found.floor
    return { ...found, from }
  } finally {
    box.floor.looked({ from, floor }, performance.now() - begunAt)
  }
}

const hasMost = (lanes: Lane[], perGroup: number) =>
  [...Map.groupBy(lanes, ({ group }) => group).values()].some(({ length }) => length >= perGroup)

/** Lanes with failures share a part of the slots, in which tenants leave room to each other as they do in all. */
function failingRoomOf<Item extends { laneId: string }, Outcome>(box: Box<Item, Outcome>) {
  if (box.options.failingShare === undefined) return null
  const failing = failingOf(box)
  const limit = mostFailing(box) - failing.length
  const held = Map.groupBy(failing, ({ tenant }) => tenant)
  return { limit, of: (tenant: string) => roomFor(limit, held.get(tenant)?.length ?? 0) }
}

/** How much claimed lanes may take: together what is free, and those of one tenant what it has room for. */
function wantsOf<Item extends { laneId: string }, Outcome>(
  box: Box<Item, Outcome>,
  { lanes, tenants }: { lanes: Lane[]; tenants: ReadonlyMap<string, string> },
  free: number,
): Want[] {
  const share = Math.floor(free / Math.max(1, lanes.length))
  return [...Map.groupBy(lanes, ({ group }) => tenants.get(group) ?? group)].flatMap(([tenant, own]) => {
    const most = Math.max(1, Math.min(share, Math.floor(roomOf(box, tenant) / own.length)))
    return own.map((lane) => ({ lane, free: Math.min(box.options.capacity(lane), most), fresh: true, heldMs: 0 }))
  })
}

/** The same groups, beginning at a random one: else the first could fill all slots, and those behind it would get none meanwhile. */
function fromAnywhere(groups: string[]): string[] {
  const begin = Math.floor(Math.random() * groups.length)
  return [...groups.slice(begin), ...groups.slice(0, begin)]
}
