/** Attempts that are begun ahead wait here, in their order, until one of their lane before them has ended. */
export interface Turnstile {
  /**
   * Lets an attempt out: at once, or when its turn comes; the answer is to be called when it ends. Null: it stays inside and
   * goes back unbegun, since one before it failed, or none ended in time. `hold` is whatever stands for this hold of its lane:
   * calls that an earlier hold left behind are nothing to a new one.
   */
  enter: (hold: object) => Promise<Leave | null>
}

/** Says whether the next one may go out: an endpoint that failed gets nothing that was begun while it was well. */
type Leave = (goesOn: boolean) => void

interface Inside {
  /** Monotonic. */
  since: number
  resolve: (leave: Leave | null) => void
}

interface Lane {
  outside: number
  inside: Inside[]
}

/**
 * At most `atOnce` attempts of a lane are outside; one that waited for `patienceMs` goes back, and all behind it. Nobody goes
 * out later than that, also when a process that was frozen hears of an end before it hears of the time.
 */
export function createTurnstile({ atOnce, patienceMs }: { atOnce: number; patienceMs: number }): Turnstile {
  const lanes = new WeakMap<object, Lane>()

  function letOut(lane: Lane): Leave {
    lane.outside++
    return (goesOn) => {
      lane.outside--
      if (!goesOn || isLate(lane.inside[0])) sendBack(lane)
      lane.inside.shift()?.resolve(letOut(lane))
    }
  }

  const isLate = (first: Inside | undefined) => first !== undefined && performance.now() - first.since > patienceMs

  function sendBack(lane: Lane) {
    for (const { resolve } of lane.inside.splice(0)) resolve(null)
  }

  return {
    async enter(hold) {
      const lane = lanes.get(hold) ?? { outside: 0, inside: [] }
      lanes.set(hold, lane)
      if (lane.outside < atOnce) return letOut(lane)
      const { promise, resolve } = Promise.withResolvers<Leave | null>()
      lane.inside.push({ since: performance.now(), resolve })
      const timer = setTimeout(() => sendBack(lane), patienceMs)
      const leave = await promise
      clearTimeout(timer)
      return leave
    },
  }
}
