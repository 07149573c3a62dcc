import { Problem } from '../api/problem.ts'

/**
 * Limits work that runs at the same time in this process: in all, and for each owner. An owner also gets no further turn when it has as
 * many as are still free, so that a few owners with slow work leave turns for others.
 */
export interface Turns {
  /** Does the work. Throws `service_unavailable` when the owner may have no further turn. */
  during: <T>(owner: string, work: () => Promise<T>) => Promise<T>
}

export function createTurns(most: { inAll: number; ofOne: number }): Turns {
  const taken = new Map<string, number>()
  let all = 0
  return {
    async during(owner, work) {
      const own = taken.get(owner) ?? 0
      if (own >= Math.min(most.ofOne, most.inAll - all))
        throw new Problem('service_unavailable', { message: 'Too many files are under way: try again.' })
      all++
      taken.set(owner, own + 1)
      try {
        return await work()
      } finally {
        all--
        const left = (taken.get(owner) ?? 1) - 1
        if (left > 0) taken.set(owner, left)
        else taken.delete(owner)
      }
    },
  }
}

/** Runs work of an owner, a limited number at a time; further work waits, first in, first out, and never behind another owner's. */
export type InLine = <T>(owner: string, work: () => Promise<T>) => Promise<T>

export function createLines(ofOne: number): InLine {
  const lines = new Map<string, { running: number; waiting: (() => void)[] }>()
  return async (owner, work) => {
    const line = lines.get(owner) ?? { running: 0, waiting: [] }
    lines.set(owner, line)
    if (line.running < ofOne) line.running++
    else await new Promise<void>((begin) => line.waiting.push(begin))
    try {
      return await work()
    } finally {
      // The turn goes on to the next one.
      const next = line.waiting.shift()
      if (next) next()
      else if (--line.running === 0) lines.delete(owner)
    }
  }
}
