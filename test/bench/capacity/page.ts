import { readFileSync, writeFileSync } from 'node:fs'
import { z } from 'zod'
import type { Memory } from '../processes.ts'
import { type OfOne, scaleTables } from './scale.ts'
import type { Bytes, Cost } from './cost.ts'

/** What is measured, in the order of the page; deliveries last, since their subscriptions would be told of all else. */
export const kinds = ['send', 'callback', 'list', 'me', 'delivery'] as const
export type Kind = (typeof kinds)[number]

const titles: Record<Kind, string> = {
  send: 'send',
  callback: 'callback',
  list: 'list of 25',
  me: 'GET /me',
  delivery: 'delivery',
}
const processes = ['gateway', 'messaging', 'directory', 'platform', 'webhooks', 'postgres', 'nats', 'redis']
const bytesTitles = { tables: 'tables and indexes', wal: 'write-ahead log', stream: 'event stream' } as const
type BytesName = keyof typeof bytesTitles
const bytesNames = Object.keys(bytesTitles) as BytesName[]

export const marks = { begin: '<!-- figures: begin -->', end: '<!-- figures: end -->' }

/** What the page is made from: the results of the goals `capacity` and the machine they were taken on. */
export interface Measured {
  machine: { cores: number; model: string | undefined; node: string }
  takenAt: Date
  /** The share of the machine that other programs used meanwhile. */
  others: number
  costs: Record<Kind, Cost>
  memory: { atRest: Record<string, Memory>; most: Record<string, Memory> }
}

/** Everything between the marks. */
export function figuresOf({ machine, takenAt, others, costs, memory }: Measured): string {
  const ofOne = byKind((kind) => roundedOf(costs[kind]))
  const day = takenAt.toISOString().slice(0, 10)
  const operations = kinds.map((kind) => `${costs[kind].operations} ${titles[kind]}`).join(', ')
  return [
    `Measured ${day} on ${machine.cores} cores (${machine.model ?? 'unknown'}, Node ${machine.node}), everything on them: ${operations}. Other programs used ${Math.round(100 * others)} % of the machine meanwhile.`,
    costTable(ofOne),
    memoryTable(memory),
    ...scaleTables(ofOne),
  ].join('\n\n')
}

/** As the page shows it, so that what is computed from the page is what is computed here. */
function roundedOf({ operations, cpuMs, bytes }: Cost): OfOne {
  const micros = processes.map((name) => [name, Math.round(((cpuMs[name] ?? 0) * 1000) / operations)])
  const grown = bytesBy((name) => Math.max(0, Math.round(bytes[name] / operations)))
  return { micros: Object.fromEntries(micros) as Record<string, number>, bytes: grown }
}

const row = (cells: Array<string | number>) => `| ${cells.join(' | ')} |`
const head = (cells: string[]) => [row(cells), `|---|${'---:|'.repeat(cells.length - 1)}`]

function costTable(ofOne: Record<Kind, OfOne>) {
  const all = (kind: Kind) => Object.values(ofOne[kind].micros).reduce((sum, micros) => sum + micros, 0)
  return [
    ...head(['of one', ...kinds.map((kind) => titles[kind])]),
    ...processes.map((name) => row([`${name}, µs`, ...kinds.map((kind) => ofOne[kind].micros[name] ?? 0)])),
    row(['**together, µs**', ...kinds.map((kind) => `**${all(kind)}**`)]),
    ...bytesNames.map((name) => row([`${bytesTitles[name]}, bytes`, ...kinds.map((kind) => ofOne[kind].bytes[name])])),
  ].join('\n')
}

function memoryTable({ atRest, most }: Measured['memory']) {
  const mib = (value = 0) => value.toFixed(0)
  const services = Object.keys(atRest)
  const lines = services.map((name) => row([name, mib(atRest[name]?.pss), mib(most[name]?.pss), mib(most[name]?.rss)]))
  return [...head(['MiB of one instance', 'at rest', 'most under load', 'resident then']), ...lines].join('\n')
}

/** The cost table of a page, read again. */
export function readCosts(page: string): Record<Kind, OfOne> {
  const cellsOf = (title: string) => {
    const line = page.split('\n').find((one) => one.startsWith(`| ${title} |`))
    if (line === undefined) throw new Error(`the page has no row "${title}"`)
    return line.split('|').slice(2, -1).map(Number)
  }
  const column = (kind: Kind, title: string) => cellsOf(title)[kinds.indexOf(kind)] ?? NaN
  const read = (kind: Kind): OfOne => ({
    micros: Object.fromEntries(processes.map((name) => [name, column(kind, `${name}, µs`)])),
    bytes: bytesBy((name) => column(kind, `${bytesTitles[name]}, bytes`)),
  })
  return byKind(read)
}

const bytesBy = (value: (name: BytesName) => number): Bytes => ({
  tables: value('tables'),
  wal: value('wal'),
  stream: value('stream'),
})
const byKind = <T>(value: (kind: Kind) => T) =>
  Object.fromEntries(kinds.map((kind) => [kind, value(kind)])) as Record<Kind, T>

/** What stands between the marks of a page. */
export function partsOf(page: string): { before: string; figures: string; after: string } {
  const [before = '', rest] = page.split(marks.begin)
  const [figures, after] = rest?.split(marks.end) ?? []
  if (figures === undefined || after === undefined) throw new Error(`the page lacks ${marks.begin} or ${marks.end}`)
  return { before, figures: figures.trim(), after }
}

const Details = z.object({ costs: z.record(z.string(), z.unknown()), memory: z.unknown() })

/** Puts the figures of a run into the page. */
export function writeFigures(file: string, details: unknown, of: Omit<Measured, 'costs' | 'memory'>): void {
  const { success } = Details.safeParse(details)
  if (!success) throw new Error('--capacity: this run has not measured the goal "capacity"')
  const { before, after } = partsOf(readFileSync(file, 'utf8'))
  const figures = figuresOf({ ...(details as Pick<Measured, 'costs' | 'memory'>), ...of })
  writeFileSync(file, `${before}${marks.begin}\n\n${figures}\n\n${marks.end}${after}`)
}
