import { createHash } from 'node:crypto'

/** A number from 0 to below 1; the same seed gives the same row of them. */
export type Random = () => number

/** One row for each name, so that what one of them is used for does not move the others. */
export function randomOf(seed: number, name: string): Random {
  let state = createHash('sha256').update(`${seed} ${name}`).digest().readUInt32LE()
  // mulberry32
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** A whole number, both ends included. */
export const between = (random: Random, from: number, to: number) => from + Math.floor(random() * (to - from + 1))

export function oneOf<T>(random: Random, some: readonly T[]): T {
  const one = some[Math.floor(random() * some.length)]
  if (one === undefined) throw new Error('There is nothing to choose from.')
  return one
}

/** Something, and how often it is chosen beside others. */
export type Weighted<T> = readonly [weight: number, one: T]

export function oneByWeight<T>(random: Random, some: readonly Weighted<T>[]): T {
  let left = random() * some.reduce((sum, [weight]) => sum + weight, 0)
  const chosen = some.find(([weight]) => (left -= weight) < 0)
  if (!chosen) throw new Error('There is nothing to choose from.')
  return chosen[1]
}
