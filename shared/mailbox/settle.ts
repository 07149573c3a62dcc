import { beginSurely } from '../database/begin-surely.ts'
import { isDatabaseAway, isLockTimeout } from '../database/database.ts'
import { isAnyHeld, renewLanes } from './lanes.ts'
import { begin, type Box, count, drop, failingOf, leftSlots, mostFailing, roomOf, settleLimit } from './box.ts'
import { type Active, type Finished, type Recorded, recordTurn } from './turn.ts'

/** Records what is done, in one transaction with the release or refill of its lanes, and tops up lanes that have room. */
export async function settle<Item extends { laneId: string }, Outcome>(box: Box<Item, Outcome>): Promise<number> {
  await renew(box)
  const batch = box.done.slice(0, settleLimit)
  const empty = [...box.emptied]
  const roomy = box.arrived && !box.stopped ? [...box.active.values()].filter((owner) => hasRoom(box, owner)) : []
  box.arrived = false
  if (batch.length === 0 && empty.length === 0 && roomy.length === 0) return Infinity
  try {
    await settleBatch(box, batch, empty, roomy)
  } catch (err) {
    if (batch.length === 0 || (isDatabaseAway(err) && !isLockTimeout(err))) throw err
    await settleApart(box, batch)
    return 0
  }
  // What was done meanwhile has woken this loop again.
  return box.done.length >= settleLimit ? 0 : Infinity
}

/**
 * Outcomes that cannot be recorded together are recorded lane by lane, for no longer than leases can wait. A lane whose rows somebody has
 * locked goes behind all others, since it holds them up for as long as a statement waits for a lock.
 */
async function settleApart<Item extends { laneId: string }, Outcome>(
  box: Box<Item, Outcome>,
  batch: Finished<Item, Outcome>[],
) {
  const until = performance.now() + box.leaseMs / 3
  const lanes = [...Map.groupBy(batch, ({ owner }) => owner).values()]
  box.done.splice(0, batch.length, ...lanes.flat())
  for (const own of lanes) {
    if (performance.now() > until) return
    try {
      await settleBatch(box, own, [], [])
    } catch (err) {
      if (isLockTimeout(err)) {
        box.app.log.warn({ err, lane: own[0]?.lane.id }, 'the outcome of work on a lane waits for a lock')
        box.done.push(...box.done.splice(0, own.length))
      } else if (isDatabaseAway(err)) throw err
      else for (const one of own) await settleAlone(box, one)
    }
  }
}

/** An outcome that cannot be recorded at all must not stop others: its lane waits for the end of its lease, as if this process had died. */
async function settleAlone<Item extends { laneId: string }, Outcome>(
  box: Box<Item, Outcome>,
  one: Finished<Item, Outcome>,
) {
  try {
    await settleBatch(box, [one], [], [])
  } catch (err) {
    if (isDatabaseAway(err)) throw err
    const { lane, owner } = one
    box.app.log.error({ err, lane: lane.id }, 'the outcome of work on a lane cannot be recorded')
    box.done.shift()
    count(box, owner, -1)
    drop(box, owner)
  }
}

async function settleBatch<Item extends { laneId: string }, Outcome>(
  box: Box<Item, Outcome>,
  batch: Finished<Item, Outcome>[],
  empty: Active[],
  roomy: Active[],
) {
  const recorded = await recordBatch(box, batch, empty, roomy)
  box.done.splice(0, batch.length)
  box.emptied.splice(0, empty.length)
  box.watch.settled(batch.length)
  for (const { owner } of batch) count(box, owner, -1)
  for (const [owner, { waitMs: _, ...lane }] of recorded.releases) Object.assign(owner.lane, lane)
  for (const [owner, release] of recorded.releases) owner.release = release
  for (const [owner, arrivals] of recorded.arrivals) owner.lane.arrivals = arrivals
  for (const owner of recorded.released) drop(box, owner)
  begin(box, recorded.items)
  if (batch.length > 0) box.options.settled?.()
  const mayHaveMore = [...box.heldBack].some((tenant) => roomOf(box, tenant) > 0)
  if (recorded.isDue || box.full || mayHaveMore) box.claiming.wake()
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
  const { inWork, heldBack } = box
  const turn = {
    batch,
    empty,
    roomy,
    options,
    inWork,
    heldBack,
    freeSlots: leftSlots(box) + batch.length,
    failing: failingOf(box),
    mostFailing: mostFailing(box),
  }
  const mayGoOn = (owner: Active) => !box.stopped && box.active.get(owner.lane.id) === owner
  return beginSurely(app.sql, (tx) => recordTurn(tx, turn, mayGoOn))
}

const hasRoom = <Item extends { laneId: string }, Outcome>({ options }: Box<Item, Outcome>, owner: Active) =>
  owner.release.waitMs === null && owner.inWork > 0 && owner.inWork < options.capacity(owner.lane)

/** Lanes with long work keep their lease; those that another holder took meanwhile are given up. */
async function renew<Item extends { laneId: string }, Outcome>(box: Box<Item, Outcome>) {
  const { app, options, leaseMs } = box
  const now = performance.now()
  const aging = [...box.active.values()].filter(({ heldSince }) => now - heldSince > leaseMs / 3)
  if (aging.length === 0) return
  const lanes = aging.map(({ lane }) => lane)
  const held = await beginSurely(app.sql, (tx) => renewLanes(tx, options.lanes, leaseMs, lanes), {
    isThere: (renewed) => isAnyHeld(app.sql, options.lanes, leasesIn(renewed)),
  })
  for (const owner of aging) {
    const heldUntil = held.get(owner.lane.id)
    if (heldUntil === undefined) drop(box, owner)
    else {
      owner.lane.heldUntil = heldUntil
      owner.heldSince = now
    }
  }
}

const leasesIn = (renewed: Map<string, string>) => [...renewed].map(([id, heldUntil]) => ({ id, heldUntil }))
