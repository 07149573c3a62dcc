import type { Lane } from '@app/shared/mailbox/lanes.ts'
import { mostRecent } from '@app/shared/work/most-recent.ts'
import { createCallsUnderWay } from './calls-under-way.ts'
import { spread } from './schedule.ts'

/** Attempts at a time at a healthy endpoint; after a failure 1, doubling with each success. */
export const mostAtOnce = 10
/** The share of the last success in how soon an endpoint answers. */
const lastShare = 1 / 8
/** This many failures in a row open the breaker: one probe at a time, further and further apart. */
export const breakerFailures = 5
const probesMs = { first: 30_000, longest: 300_000 }
/** This many failures in a row, over at least ten minutes, pause the subscription; then it is probed even more rarely. */
export const pauseFailures = 20
const healingProbesMs = { first: 300_000, longest: 3_600_000 }
/** Attempts at a time at an endpoint of which nothing is heard, while too many are silent. */
const fewAtOnce = 2

/** What a failed attempt was to its lane. */
export interface Probing {
  isProbe: boolean
  /** How long its endpoint had been probed before it; 0: it was no probe. */
  probedMs: number
  /** Its subscription has paused itself: a success would have healed it. */
  isPaused: boolean
}

/** How an attempt ended, in the eyes of the endpoint's lane. */
export type Ended =
  | { as: 'success'; tookMs: number }
  | ({ as: 'failure' } & Probing)
  /** It asked us to wait, or something of ours is away: nobody's failure. */
  | { as: 'wait'; waitMs: number }
  /** It did not go out: the endpoint was no longer as well as when it was begun. */
  | { as: 'unbegun' }

/** What this process knows of a lane; `failures` stands in Postgres. */
interface Health {
  atOnce: number
  /** How soon it has answered lately; Infinity: not known, or what was begun ahead for it went back. */
  tookMs: number
  /** Monotonic times: of the breaker's next probe, and of what a `Retry-After` asked for. */
  openUntil: number
  askedUntil: number
}

export interface LaneHealth {
  capacity: (lane: Lane) => number
  /** How soon its endpoint has answered lately, in ms; Infinity while that is not known, or it gets less than `mostAtOnce` at a time. */
  answersIn: (lane: Lane) => number
  /** Lanes that were claimed just now: the waits of their earlier holds are over. */
  claimed: (lanes: Lane[]) => void
  /** Whether the lane was claimed again since: what an earlier hold left behind says nothing about it. */
  isOver: (lane: Lane) => boolean
  /** An attempt begins; the answer is to be called when it ends. */
  begun: (lane: Pick<Lane, 'id' | 'group'>) => (isSuccess: boolean) => void
  /** Works out what a lane does after these ends; counts for good at `commit`. */
  after: (lane: Lane, ends: Ended[]) => After
  /** For a subscription that has just paused itself: the wait before the first probe that may heal it. */
  pause: (laneId: string) => number
  /** Forgets what was worked out and not committed. */
  rollback: () => void
  commit: () => void
}

interface After {
  failures: number
  waitMs: number | null
  /** The first of the failures in a row is among these ends. */
  isNewStreak: boolean
}

const healthy: Health = { atOnce: mostAtOnce, tookMs: Infinity, openUntil: 0, askedUntil: 0 }

/** At most this share of `mostSilent` is counted of one organization: many have to hang before everybody is suspected. */
const silentShare = 0.25

/**
 * Endpoints that were healthy and hang from one moment to the next have no failures yet. While calls at silent ones take
 * more than `mostSilent` of the slots, an endpoint gets few until it answers, so that a hundred of them do not fill all.
 */
export function createLaneHealth(mostSilent = Infinity, now: () => number = () => performance.now()): LaneHealth {
  const known = mostRecent<string, Health>(20_000)
  const claims = mostRecent<string, Lane>(20_000)
  let drafts = new Map<string, Health>()
  const underWay = createCallsUnderWay(now, mostSilent * silentShare)
  const healthOf = (id: string) => drafts.get(id) ?? known.get(id) ?? healthy

  function capacity(lane: Lane) {
    if (lane.failures > 0 || underWay.isHanging(lane.id)) return 1
    const { atOnce } = healthOf(lane.id)
    return underWay.silentTo(lane.group) > mostSilent && !underWay.answers(lane.id)
      ? Math.min(atOnce, fewAtOnce)
      : atOnce
  }

  return {
    capacity,
    answersIn: (lane) => (capacity(lane) === mostAtOnce ? healthOf(lane.id).tookMs : Infinity),
    claimed(lanes) {
      for (const lane of lanes) {
        const { id } = lane
        claims.set(id, lane)
        const health = known.get(id)
        if (health) known.set(id, { ...health, openUntil: 0, askedUntil: 0 })
      }
    },
    // As texts they compare as times; a hold that was renewed since outlived the claim, which was rolled back.
    isOver: ({ id, heldUntil }) => (claims.get(id)?.heldUntil ?? '') > heldUntil,
    begun: (lane) => underWay.begin(lane),
    after(lane, ends) {
      const start = { failures: lane.failures, health: healthOf(lane.id) }
      const { failures, health } = ends.reduce((before, end) => step(before, end, now()), start)
      drafts.set(lane.id, health)
      const waitMs = Math.max(health.openUntil, health.askedUntil) - now()
      const isNewStreak = failures > 0 && (lane.failures === 0 || ends.some(({ as }) => as === 'success'))
      return { failures, waitMs: waitMs > 0 ? waitMs : null, isNewStreak }
    },
    pause(laneId) {
      const waitMs = spread(healingProbesMs.first, 0.2)
      drafts.set(laneId, { ...healthOf(laneId), openUntil: now() + waitMs })
      return waitMs
    },
    rollback() {
      drafts = new Map()
    },
    commit() {
      for (const [id, health] of drafts) known.set(id, health)
      drafts = new Map()
    },
  }
}

const ofLate = (before: number, last: number) => (before === Infinity ? last : before + lastShare * (last - before))

interface State {
  failures: number
  health: Health
}

function step({ failures: before, health }: State, end: Ended, now: number): State {
  if (end.as === 'success') {
    const atOnce = Math.min(before > 0 ? 2 : health.atOnce * 2, mostAtOnce)
    return { failures: 0, health: { ...health, atOnce, tookMs: ofLate(health.tookMs, end.tookMs), openUntil: 0 } }
  }
  if (end.as === 'unbegun') return { failures: before, health: { ...health, tookMs: Infinity } }
  if (end.as === 'wait') {
    const askedUntil = Math.max(health.askedUntil, now + end.waitMs)
    return { failures: before, health: { ...health, atOnce: 1, askedUntil } }
  }
  const failures = before + 1
  const failed = { ...health, atOnce: 1 }
  // Attempts that were under way when it opened are no probes, and change nothing about the first one.
  if (failures < breakerFailures || (!end.isProbe && health.openUntil > now)) return { failures, health: failed }
  const { first, longest } = end.isPaused ? healingProbesMs : probesMs
  // All waits before it, and the first one once more: so each wait is twice the last, whichever process made that one.
  const waitMs = Math.min(first + end.probedMs, longest)
  return { failures, health: { ...failed, openUntil: now + spread(waitMs, 0.2) } }
}
