import type { TransactionSql } from '../database/database.ts'
import { type Lane, lockLanes, type Noted, type Release, releaseLanes } from './lanes.ts'
import { partOf, roomFor } from './rooms.ts'
import type { Directive, Done, TurningOptions } from './mailbox.ts'

/** A lane that is held here. */
export interface Active {
  lane: Lane
  tenant: string
  inWork: number
  /** Monotonic time of the claim. */
  claimedAt: number
  /** Monotonic time of the claim or renewal; the fence counts from here. */
  heldSince: number
  /** What directives said so far of its release. */
  release: Omit<Release, 'lane'>
}

/** An item that was worked on, and is not recorded yet. */
export interface Finished<Item, Outcome> extends Done<Item, Outcome> {
  owner: Active
}

/** What a settlement has recorded. */
export interface Recorded<Item> {
  /** That lanes took at once. */
  items: Item[]
  released: Active[]
  releases: Map<Active, Given>
  /** Whether a lane that was given back is due at once. */
  isDue: boolean
  arrivals: Array<[Active, string]>
}

/** What one settlement records. */
interface Turn<Item extends { laneId: string }, Outcome> {
  options: TurningOptions<Item, Outcome>
  /** Slots that are free once the batch is recorded. */
  freeSlots: number
  /** Items in work by tenant, those of the batch among them. */
  inWork: ReadonlyMap<string, number>
  /** Tenants that have lanes which wait for room. */
  heldBack: ReadonlySet<string>
  /** Held lanes that have failures, as far as it is known before this batch. */
  failing: Active[]
  /** How many of them may be held. */
  mostFailing: number
  batch: Finished<Item, Outcome>[]
  empty: Active[]
  /** Held lanes with room, into which something may have come. */
  roomy: Active[]
}

/** The transaction of a settlement; changes nothing in memory, since it may be rolled back and run again. */
export async function recordTurn<Item extends { laneId: string }, Outcome>(
  tx: TransactionSql,
  turn: Turn<Item, Outcome>,
  mayGoOn: (owner: Active) => boolean,
): Promise<Recorded<Item>> {
  const { options, batch, empty, roomy } = turn
  const lock = () =>
    lockLanes(
      tx,
      options.lanes,
      [...batch, ...empty].map(({ lane }) => lane),
    )
  const releases =
    batch.length > 0 ? releasesOf(batch, await options.settle(tx, batch, lock)) : new Map<Active, Given>()
  const news = await arrivalsOf(tx, options.lanes, roomy)
  const finished = Map.groupBy(batch, ({ owner }) => owner)
  const stillIn = (owner: Active) => owner.inWork - (finished.get(owner)?.length ?? 0)
  const candidates = [...new Set([...finished.keys(), ...news.keys()])]
  const offers = options.refill ? offersOf(turn, candidates.filter(mayGoOn), releases, stillIn) : []
  const wants = offers.map(({ want }) => want)
  const items = wants.length > 0 ? await options.next(tx, wants) : []
  const refilled = new Set(items.map((item) => item.laneId))
  const released = [...finished.keys(), ...empty].filter(
    (owner) => stillIn(owner) === 0 && !refilled.has(owner.lane.id),
  )
  // A lane that was offered nothing may have more.
  const offered = new Set(offers.map(({ owner }) => owner))
  const nextMsOf = (owner: Active) => (options.refill && !offered.has(owner) && finished.has(owner) ? 0 : null)
  const given = released.map((owner) => ({
    lane: owner.lane,
    nextMs: nextMsOf(owner),
    ...(releases.get(owner) ?? owner.release),
  }))
  const noted = changedFailures(releases).filter(({ owner }) => !released.includes(owner))
  const isDue = await releaseLanes(tx, options.lanes, await withNextDue(tx, options, given), noted)
  // An arrival is noted only for lanes that could take it: the others are looked at again.
  return { items, released, releases, isDue, arrivals: [...news].filter(([owner]) => offered.has(owner)) }
}

/** How long a lane is held at least before its tenant's due lanes, which wait for room, get their turn instead. */
const turnMs = 1_000

/**
 * How much the lanes that go on may take. Slots limit refills as they limit claims. A lane with nothing left in work keeps at least the
 * slot that it has freed, unless its tenant has to leave it to others.
 */
function offersOf<Item extends { laneId: string }, Outcome>(
  turn: Turn<Item, Outcome>,
  candidates: Active[],
  releases: Map<Active, Given>,
  stillIn: (owner: Active) => number,
) {
  const { options, batch, inWork, heldBack, freeSlots } = turn
  const share = Math.floor(Math.max(0, freeSlots) / Math.max(1, candidates.length))
  const ended = Map.groupBy(batch, ({ owner }) => owner.tenant)
  const now = performance.now()
  const givesWay = givingWay(turn, releases)
  return [...Map.groupBy(candidates, ({ tenant }) => tenant)].flatMap(([tenant, own]) => {
    const held = (inWork.get(tenant) ?? 0) - (ended.get(tenant)?.length ?? 0)
    const room = roomFor(freeSlots, held)
    return own.flatMap((owner, n) => {
      const release = releases.get(owner) ?? owner.release
      const isOver = heldBack.has(tenant) && now - owner.claimedAt > turnMs
      const isIdle = stillIn(owner) === 0
      if (release.waitMs !== null || isOver || givesWay(owner, isIdle)) return []
      const least = isIdle ? 1 : 0
      const most = Math.min(Math.max(least, share), partOf(room, n, own.length))
      const lane = { ...owner.lane, ...release }
      const free = Math.min(options.capacity(lane) - stillIn(owner), most)
      return free > 0 ? [{ owner, want: { lane, free, fresh: false, heldMs: now - owner.claimedAt } }] : []
    })
  })
}

/**
 * Lanes with failures have a share of the slots for themselves. If a held lane begins to fail when that share is used up, it is given back
 * once its work is done, and claimed again within the share: else lanes that were claimed while they were well could fill all slots.
 */
function givingWay<Item extends { laneId: string }, Outcome>(
  { failing, mostFailing }: Turn<Item, Outcome>,
  releases: Map<Active, Given>,
) {
  const held = new Set(failing)
  for (const [owner, { failures, waitMs }] of releases) {
    if (waitMs !== null || failures === 0) held.delete(owner)
    else if (failures !== undefined) held.add(owner)
  }
  return (owner: Active, isIdle: boolean): boolean => {
    if (!held.has(owner) || held.size <= mostFailing) return false
    if (isIdle) held.delete(owner)
    return true
  }
}

type Given = Omit<Release, 'lane'>

/** What the directives say of each owner; what one leaves out stays as an earlier one of the same hold said. */
function releasesOf<Item extends { laneId: string }, Outcome>(
  batch: Finished<Item, Outcome>[],
  directives: Directive[],
): Map<Active, Given> {
  const owners = new Map(batch.map(({ item, owner }) => [item.laneId, owner]))
  const releases = new Map<Active, Given>()
  for (const { laneId, ...said } of directives) {
    const owner = owners.get(laneId)
    if (owner) releases.set(owner, { ...(releases.get(owner) ?? owner.release), ...said })
  }
  return releases
}

const changedFailures = (releases: Map<Active, Given>): Array<Noted & { owner: Active }> =>
  [...releases].flatMap(([owner, { failures }]) =>
    failures === undefined || failures === owner.lane.failures ? [] : [{ owner, lane: owner.lane, failures }],
  )

/** The held lanes into which something came since they were looked at, with their new count. */
async function arrivalsOf(tx: TransactionSql, table: string, roomy: Active[]): Promise<Map<Active, string>> {
  if (roomy.length === 0) return new Map()
  const seen = roomy.map(({ lane }) => ({ id: lane.id, arrivals: lane.arrivals }))
  const rows = await tx<{ id: string; arrivals: string }[]>`
    select l.id, l.arrivals from json_to_recordset(${JSON.stringify(seen)}::text::json) as s(id text, arrivals bigint)
    join ${tx(table)} l on l.id = s.id where l.arrivals <> s.arrivals
  `
  const owners = new Map(roomy.map((owner) => [owner.lane.id, owner]))
  return new Map(rows.flatMap(({ id, arrivals }) => [[owners.get(id), arrivals] as const]).filter(isOwned))
}

const isOwned = (entry: readonly [Active | undefined, string]): entry is readonly [Active, string] =>
  entry[0] !== undefined

async function withNextDue<Item extends { laneId: string }, Outcome>(
  tx: TransactionSql,
  { nextDue }: TurningOptions<Item, Outcome>,
  given: Release[],
): Promise<Release[]> {
  const open = given.filter(({ waitMs }) => waitMs === null).map(({ lane }) => lane.id)
  if (!nextDue || open.length === 0) return given
  const next = new Map((await nextDue(tx, open)).map(({ laneId, waitMs }) => [laneId, waitMs]))
  return given.map((release) => ({ ...release, nextMs: next.get(release.lane.id) ?? release.nextMs ?? null }))
}
