import { claimLanes, findDueGroups } from './claim-lanes.ts'
import { isDatabaseAway, isUndone } from '../database/database.ts'
import { begin, type Box, freeSlots, hold } from './box.ts'
import type { Claimed } from './mailbox.ts'
import { mayTakeLapsed } from './outage.ts'

const claimLimit = 128
const busyPollMs = 250
const idlePollMs = 1_000
/** A group whose pace is used up has its next token soon. */
const pacePollMs = 25

/** One claim; answers after how many ms to look again. */
export async function claim<Item extends { laneId: string }, Outcome>(box: Box<Item, Outcome>): Promise<number> {
  const { app, options, leaseMs, active } = box
  if (box.stopped) return Infinity
  const free = freeSlots(box)
  box.full = free === 0
  if (box.full) return busyPollMs
  const startedAt = performance.now()
  const failing = [...active.values()].filter(({ lane }) => lane.failures > 0).length
  const { failingShare } = options
  const failingLimit = failingShare === undefined ? null : Math.floor(options.slots * failingShare) - failing
  const { groups, last } = await findDueGroups(app.sql, options.lanes, box.afterGroup)
  box.afterGroup = last
  const lapsedToo = mayTakeLapsed(box, startedAt)
  box.full = failingLimit !== null && failingLimit <= 0
  if (groups.length === 0) return box.busy > 0 ? busyPollMs : idlePollMs
  const answered: (Claimed<Item> & { paced: boolean })[] = []
  const claiming = app.sql.begin(async (tx) => {
    const claimed = await claimLanes(tx, {
      table: options.lanes,
      leaseMs,
      perGroup: options.perGroup ?? 16,
      limit: Math.min(free, claimLimit),
      failingLimit,
      pace: options.pace,
      groups,
      lapsedToo,
    })
    const share = Math.max(1, Math.floor(free / Math.max(1, claimed.lanes.length)))
    const wants = claimed.lanes.map((lane) => ({ lane, free: Math.min(options.capacity(lane), share), fresh: true }))
    const items = wants.length > 0 ? await options.next(tx, wants) : []
    answered.push({ ...claimed, items })
    return { ...claimed, items }
  })
  const { lanes, items, paced } = await claiming.catch((err: unknown) => {
    const [claimed] = answered
    // It may have been committed all the same.
    if (claimed && isDatabaseAway(err) && !isUndone(err))
      void options.letGo?.(claimed, startedAt).finally(box.claiming.wake)
    throw err
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
