import { Problem } from './problem.ts'

/** Bounds long work in this process: in all, and of each owner, so that one cannot take the turns of the others. */
export interface Turns {
  /** Does the work. Throws `service_unavailable` when all turns, or all of the owner's, are taken. */
  during: <T>(owner: string, work: () => Promise<T>) => Promise<T>
}

export function createTurns(most: { inAll: number; ofOne: number }): Turns {
  const taken = new Map<string, number>()
  let all = 0
  return {
    async during(owner, work) {
      const own = taken.get(owner) ?? 0
      if (all >= most.inAll || own >= most.ofOne)
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
