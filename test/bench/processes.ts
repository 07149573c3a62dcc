import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'

// What processes use, as Linux counts it in /proc.

/** A name, and the process ids at the roots of its trees. */
export type Roots = Record<string, number[]>

interface Stat {
  parent: number
  /** Its own, and that of children that have ended: what an ended child used is not lost. */
  ticks: number
}

/** Milliseconds of CPU that each name's process trees have used since they began. */
export function cpuMsOf(roots: Roots): Record<string, number> {
  const stats = readStats()
  const children = Map.groupBy(stats.keys(), (pid) => stats.get(pid)?.parent ?? 0)
  const ticksOf = (pid: number): number =>
    (children.get(pid) ?? []).reduce((sum, child) => sum + ticksOf(child), stats.get(pid)?.ticks ?? 0)
  return mapRoots(roots, (pids) => pids.reduce((sum, pid) => sum + ticksOf(pid), 0) * tickMs())
}

/** Milliseconds of CPU of those children of this process that have ended by now. */
export function cpuMsOfEnded(): number {
  const [, , user = 0, system = 0] = ticksIn(read(`/proc/${process.pid}/stat`))
  return (user + system) * tickMs()
}

/** What each name used between two readings. */
export const cpuBetween = (before: Record<string, number>, after: Record<string, number>): Record<string, number> =>
  mapRoots(after, (ms, name) => ms - (before[name] ?? 0))

export const sumOf = (parts: Record<string, number>): number =>
  Object.values(parts).reduce((sum, part) => sum + part, 0)

/**
 * From now on, which share of the machine is used by programs that are not of this process's tree; other guests of the same
 * host count, too.
 */
export function watchOthers(): () => number {
  const ours = () => cpuMsOf({ tree: [process.pid] })['tree'] ?? 0
  const [busyBefore, oursBefore, startedAt] = [machineBusyMs(), ours(), performance.now()]
  return () => {
    const others = machineBusyMs() - busyBefore - (ours() - oursBefore)
    return Math.max(0, others / ((performance.now() - startedAt) * availableParallelism()))
  }
}

/** Of all cores, since the machine was started. */
function machineBusyMs() {
  const [, user, nice, system, , , interrupts, softInterrupts, stolen] = read('/proc/stat').split(/\s+/, 9).map(Number)
  const ticks = [user, nice, system, interrupts, softInterrupts, stolen]
  return ticks.reduce<number>((sum, some = 0) => sum + some, 0) * tickMs()
}

/** MiB that processes hold. */
export interface Memory {
  /** Proportional: a page that several processes have in common, such as those of one program, is split between them. */
  pss: number
  /** Resident: such a page counts in full for each. */
  rss: number
}

/** What each name's root processes hold. */
export function memoryMibOf(roots: Roots): Record<string, Memory> {
  return mapRoots(roots, (pids) => {
    const rollups = pids.map((pid) => read(`/proc/${pid}/smaps_rollup`))
    return { pss: mibIn(rollups, 'Pss'), rss: mibIn(rollups, 'Rss') }
  })
}

const mibIn = (rollups: string[], field: 'Pss' | 'Rss') =>
  rollups.reduce((sum, text) => sum + Number(new RegExp(`^${field}:\\s*(\\d+) kB`, 'm').exec(text)?.[1] ?? 0), 0) / 1024

/** Of all names together. */
export const allMemory = (parts: Record<string, Memory>): Memory => {
  const all = Object.values(parts)
  return {
    pss: all.reduce((sum, { pss }) => sum + pss, 0),
    rss: all.reduce((sum, { rss }) => sum + rss, 0),
  }
}

function mapRoots<T, U>(record: Record<string, T>, map: (value: T, name: string) => U): Record<string, U> {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, map(value, name)]))
}

function readStats() {
  const stats = new Map<number, Stat>()
  for (const name of readdirSync('/proc')) {
    const stat = /^\d+$/.test(name) && readStat(Number(name))
    if (stat) stats.set(Number(name), stat)
  }
  return stats
}

function readStat(pid: number): Stat | undefined {
  const text = read(`/proc/${pid}/stat`)
  if (text === '') return undefined
  return { parent: Number(fieldsOf(text)[1]), ticks: ticksIn(text).reduce((sum, ticks) => sum + ticks, 0) }
}

/** User and system time of its own, then of its ended children. */
const ticksIn = (stat: string) => fieldsOf(stat).slice(11, 15).map(Number)

/** From the third on: the second, the name, is in parentheses and may hold spaces. */
const fieldsOf = (stat: string) => stat.slice(stat.lastIndexOf(')') + 2).split(' ')

/** Empty when the process has ended. */
function read(path: string) {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

let knownTickMs: number | undefined

function tickMs() {
  knownTickMs ??= 1000 / Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }))
  return knownTickMs
}
