import { Problem } from '../api/problem.ts'

/** How much work may run at the same time in this process. */
interface Most {
  ofOne: number
  /** Of all owners together; beyond it each owner may have its first. */
  inAll: number
  /** How many such first ones there may be. */
  firsts: number
}

/**
 * Whether an owner with `own` works under way, of `all` works, may begin another one. It may not have more than are still free, so that
 * a few owners with slow work leave some for others. For an owner's first there is room beside those.
 */
const mayBegin = ({ ofOne, inAll, firsts }: Most, own: number, all: number) =>
  own < Math.min(ofOne, inAll - all) || (own === 0 && all < inAll + firsts)

/** Limits work that runs at the same time in this process: of each owner, and in all. */
export interface Turns {
  /** Does the work. Throws `service_unavailable` when the owner may have no further turn. */
  during: <T>(owner: string, work: () => Promise<T>) => Promise<T>
}

export function createTurns(most: Most): Turns {
  const taken = new Map<string, number>()
  let all = 0
  return {
    async during(owner, work) {
      const own = taken.get(owner) ?? 0
      if (!mayBegin(most, own, all))
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

/** Runs work of an owner, a limited number at a time; further work waits, first in, first out. */
export type InLine = <T>(owner: string, work: () => Promise<T>) => Promise<T>

interface Line {
  running: number
  waiting: (() => void)[]
}

/**
 * Without a limit in all, nobody's work waits for another owner's. With one, an owner's first work never waits; among further ones,
 * those of the owner with the fewest under way come first.
 */
export function createLines(ofOne: number, inAll = Infinity): InLine {
  const most = { ofOne, inAll, firsts: Infinity }
  const lines = new Map<string, Line>()
  /** Those in which somebody waits; who got nothing for the longest time stands first. */
  const behind = new Set<Line>()
  let all = 0

  function next(): Line | undefined {
    let found: Line | undefined
    for (const line of behind)
      if (mayBegin(most, line.running, all) && line.running < (found?.running ?? Infinity)) found = line
    return found
  }

  function beginWaiting() {
    for (let line = next(); line; line = next()) {
      behind.delete(line)
      const begin = line.waiting.shift()
      if (line.waiting.length > 0) behind.add(line)
      take(line)
      begin?.()
    }
  }

  function take(line: Line) {
    line.running++
    all++
  }

  return async (owner, work) => {
    const line = lines.get(owner) ?? { running: 0, waiting: [] }
    lines.set(owner, line)
    // This overtakes nobody: if one of its line could begin, it would not be waiting.
    if (mayBegin(most, line.running, all)) take(line)
    else {
      behind.add(line)
      await new Promise<void>((begin) => line.waiting.push(begin))
    }
    try {
      return await work()
    } finally {
      line.running--
      all--
      beginWaiting()
      if (line.running === 0) lines.delete(owner)
    }
  }
}
