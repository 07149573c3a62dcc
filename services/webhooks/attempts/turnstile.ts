/** Attempts that are begun ahead wait here, in their order, until one of their lane before them has ended. */
export interface Turnstile {
  /**
   * Lets an attempt out: at once, or when its turn comes; the answer is to be called when it ends. Null: it stays inside and
   * goes back unbegun, since one before it failed, or none ended in time.
   */
  enter: (laneId: string) => Promise<Leave | null>
  /** How many wait, of all lanes. */
  waiting: () => number
}

/** Says whether the next one may go out: an endpoint that failed gets nothing that was begun while it was well. */
type Leave = (goesOn: boolean) => void

interface Lane {
  outside: number
  inside: Array<(leave: Leave | null) => void>
}

/** At most `atOnce` attempts of a lane are outside; one that waited for `patienceMs` goes back, and all behind it. */
export function createTurnstile({ atOnce, patienceMs }: { atOnce: number; patienceMs: number }): Turnstile {
  const lanes = new Map<string, Lane>()
  let waiting = 0

  function letOut(laneId: string, lane: Lane): Leave {
    lane.outside++
    return (goesOn) => {
      lane.outside--
      if (!goesOn) sendBack(lane)
      const [next] = lane.inside.splice(0, 1)
      if (next) {
        waiting--
        next(letOut(laneId, lane))
      } else if (lane.outside === 0) lanes.delete(laneId)
    }
  }

  function sendBack(lane: Lane) {
    const all = lane.inside.splice(0)
    waiting -= all.length
    for (const one of all) one(null)
  }

  return {
    waiting: () => waiting,
    async enter(laneId) {
      const lane = lanes.get(laneId) ?? { outside: 0, inside: [] }
      lanes.set(laneId, lane)
      if (lane.outside < atOnce) return letOut(laneId, lane)
      const { promise, resolve } = Promise.withResolvers<Leave | null>()
      lane.inside.push(resolve)
      waiting++
      const timer = setTimeout(() => {
        if (lane.inside.includes(resolve)) sendBack(lane)
      }, patienceMs)
      const leave = await promise
      clearTimeout(timer)
      return leave
    },
  }
}
