import type { Figure, FigureName } from './figures.ts'
import type { Load } from './load/wrk.ts'
import { median } from './median.ts'
import type { Options } from './options.ts'

/** Measures for so many seconds. */
type Side<S> = (seconds: number) => Promise<S>

const warmUpSeconds = 2

/**
 * How many clients ask at a time, where a goal does not say how many it is about. A quick run often shares the machine with
 * others: a gateway that 64 keep busy is soon late there, and turns some away, which fails a measurement.
 */
export const usualConnections = ({ quick }: Options): number => (quick ? 8 : 64)

/**
 * Runs the sides in turn, A B A B …, so that whatever else happens on the machine meets both; before that each once, to
 * be warm. Answers what each came to, by round.
 */
export async function alternate<N extends string, S>(
  { rounds, seconds, quick }: Options,
  sides: Record<N, Side<S>>,
): Promise<Record<N, S[]>> {
  const all = Object.entries(sides) as [N, Side<S>][]
  if (!quick) for (const [, side] of all) await side(Math.min(warmUpSeconds, seconds))
  const results = Object.fromEntries(all.map(([name]) => [name, [] as S[]])) as Record<N, S[]>
  for (let round = 0; round < rounds; round++) {
    for (const [name, side] of all) results[name].push(await side(seconds))
  }
  return results
}

/** A figure that says how many times `by` the values of `of` are, round by round. */
export function compare(name: FigureName, of: number[], by: number[], show: (value: number) => string): Figure {
  const rounds = of.map((value, round) => value / (by[round] ?? NaN))
  return { name, rounds, from: `${show(median(of))} : ${show(median(by))}` }
}

export const throughput = (name: FigureName, of: Load[], by: Load[]): Figure =>
  compare(name, perSeconds(of), perSeconds(by), perSecondText)

const perSeconds = (loads: Load[]) => loads.map(({ perSecond }) => perSecond)

export const perSecondText = (value: number): string => `${(value / 1000).toPrecision(3)} k/s`
export const msText = (value: number): string => `${value.toPrecision(3)} ms`
export const microsText = (value: number): string => `${value.toFixed(0)} µs`

/** A figure that stands by itself. */
export const oneAlone = (name: FigureName, rounds: number[], show: (value: number) => string): Figure => ({
  name,
  rounds,
  from: rounds.map(show).join(', '),
})
