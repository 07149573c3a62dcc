import { between, randomOf } from '../random.ts'
import { type Aim, aimOf } from './faults.ts'

export interface Step {
  /** From the beginning of the load. */
  atMs: number
  fault: string
  aim: Aim
}

const quietMs = { atFirst: 4_000, atLast: 6_000 }

/** Which fault comes when: every kind once before any comes again. The same seed gives the same plan. */
export function planOf(seed: number, seconds: number, names: string[]): Step[] {
  const random = randomOf(seed, 'nemesis')
  const steps: Step[] = []
  let deck: string[] = []
  let atMs = quietMs.atFirst
  while (atMs < seconds * 1_000 - quietMs.atLast) {
    if (deck.length === 0) deck = shuffled(names, random)
    const fault = deck.pop() ?? ''
    steps.push({ atMs, fault, aim: aimOf(random) })
    atMs += between(random, 800, 4_000)
  }
  return steps
}

function shuffled<T>(some: T[], random: () => number): T[] {
  const all = some.map((one) => ({ one, place: random() }))
  return all.toSorted((a, b) => a.place - b.place).map(({ one }) => one)
}

export const lineOf = ({ atMs, fault, aim }: Step) =>
  `${(atMs / 1_000).toFixed(1).padStart(6)} s  ${fault} (${aim.service}-${aim.instance + 1}, ${aim.server}, ${aim.forMs} ms)`
