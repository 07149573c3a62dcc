import type { TransactionSql } from '../database/database.ts'
import { type Lane, type Noted, type Release, releaseLanes } from './lanes.ts'
import type { Directive, Done, TurningOptions } from './mailbox.ts'

/** A lane that is held here. */
export interface Active {
  lane: Lane
  inWork: number
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
  const releases = batch.length > 0 ? releasesOf(batch, await options.settle(tx, batch)) : new Map<Active, Given>()
  const news = await arrivalsOf(tx, options.lanes, roomy)
  const finished = Map.groupBy(batch, ({ owner }) => owner)
  const stillIn = (owner: Active) => owner.inWork - (finished.get(owner)?.length ?? 0)
  const candidates = [...new Set([...finished.keys(), ...news.keys()])]
  // Slots bound refills as they bound claims; a lane with nothing in work keeps at least the slot that it has freed.
  const share = Math.floor(Math.max(0, turn.freeSlots) / Math.max(1, candidates.length))
  const offers = candidates.flatMap((owner) => {
    const release = releases.get(owner) ?? owner.release
    const lane = { ...owner.lane, ...release }
    const most = stillIn(owner) === 0 ? Math.max(1, share) : share
    const free = Math.min(options.capacity(lane) - stillIn(owner), most)
    const goesOn = options.refill && release.waitMs === null && mayGoOn(owner)
    return goesOn && free > 0 ? [{ owner, want: { lane, free, fresh: false } }] : []
  })
  const wants = offers.map(({ want }) => want)
  const items = wants.length > 0 ? await options.next(tx, wants) : []
  const refilled = new Set(items.map((item) => item.laneId))
  const released = [...finished.keys(), ...empty].filter(
    (owner) => stillIn(owner) === 0 && !refilled.has(owner.lane.id),
  )
  const given = released.map((owner) => ({ lane: owner.lane, ...(releases.get(owner) ?? owner.release) }))
  const noted = changedFailures(releases).filter(({ owner }) => !released.includes(owner))
  const isDue = await releaseLanes(tx, options.lanes, await withNextDue(tx, options, given), noted)
  // An arrival is noted only for lanes that could take it: the others are looked at again.
  const offered = new Set(offers.map(({ owner }) => owner))
  return { items, released, releases, isDue, arrivals: [...news].filter(([owner]) => offered.has(owner)) }
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
  return given.map((release) => ({ ...release, nextMs: next.get(release.lane.id) ?? null }))
}
