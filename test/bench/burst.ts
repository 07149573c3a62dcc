import type { Figure, FigureName } from './figures.ts'
import { type Load, load, type Requests } from './load/wrk.ts'
import { median } from './median.ts'
import { cpuBetween, cpuMsOf, cpuMsOfEnded, type Roots, sumOf } from './processes.ts'
import type { Project } from './project/project.ts'
import { compare, microsText } from './rounds.ts'

/** A time of load, and what it cost. */
export interface Burst extends Load {
  /** Milliseconds of CPU by process. */
  cpuMs: Record<string, number>
}

/** As much of a burst as its cost is divided by. */
type Many = Pick<Burst, 'requests'>

/** Reads a burst's cost. */
export type Cpu<B extends Many> = (burst: B) => Record<string, number>

/** Processes that belong to the outside world and not to the price of a request. */
const outside = ['simulator', 'generator', 'publisher', 'receiver']

export const allRoots = (project: Project): Roots => Object.assign({}, ...Object.values(project.roots())) as Roots

export async function burst(requests: Requests, connections: number, seconds: number, roots: Roots): Promise<Burst> {
  const cpuMs = () => ({ ...cpuMsOf(roots), generator: cpuMsOfEnded() })
  const before = cpuMs()
  const result = await load(requests, connections, seconds)
  return { ...result, cpuMs: cpuBetween(before, cpuMs()) }
}

/** The CPU of one request of `of` against that of one of `by`, all processes but the outside world's together. */
export const compareCpu = <B extends Burst>(name: FigureName, of: B[], by: B[], cpuMs: Cpu<B>): Figure =>
  compare(name, microsOf(of, cpuMs), microsOf(by, cpuMs), microsText)

const microsOf = <B extends Many>(bursts: B[], cpuMs: Cpu<B>) =>
  bursts.map((burst) => {
    const inside = Object.entries(cpuMs(burst)).filter(([name]) => !outside.includes(name))
    return (sumOf(Object.fromEntries(inside)) * 1000) / burst.requests
  })

/** `CPU of a send, c=64: 201 µs = gateway 41 + messaging 30 + …; beside it simulator 12, generator 9`, by medians. */
export function cpuNote<B extends Many>(title: string, bursts: B[], cpuMs: Cpu<B>): string {
  const names = Object.keys(bursts[0] ? cpuMs(bursts[0]) : {})
  const shareOf = (name: string) =>
    `${name} ${median(bursts.map((burst) => ((cpuMs(burst)[name] ?? 0) * 1000) / burst.requests)).toFixed(0)}`
  const apart = names.filter((name) => outside.includes(name)).map(shareOf)
  const ours = names.filter((name) => !outside.includes(name)).map(shareOf)
  return `${title}: ${microsText(median(microsOf(bursts, cpuMs)))} = ${ours.join(' + ')}; beside it ${apart.join(', ')}`
}

/** The notes of a comparison that is made at one level of load. */
export const cpuNotes = (title: string, { project, floor }: Record<'project' | 'floor', Burst[]>): string[] => [
  cpuNote(`CPU of ${title}`, project, ({ cpuMs }) => cpuMs),
  cpuNote('  and what it is compared with', floor, ({ cpuMs }) => cpuMs),
]
