import { readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import type { Roots } from './processes.ts'

interface CallFrame {
  functionName: string
  url: string
  lineNumber: number
}

interface Profile {
  nodes: Array<{
    id: number
    callFrame: CallFrame
    children?: number[]
  }>
  /** Microseconds of the system's monotonic clock, as those of `process.hrtime`. */
  startTime: number
  samples: number[]
  timeDeltas: number[]
}

/** A stretch of time, in microseconds of the monotonic clock. */
export interface Stretch {
  from: number
  to: number
}

export const monotonicMicros = (): number => Number(process.hrtime.bigint() / 1000n)

const shown = 25

/**
 * What cost most in each service by its CPU profile, of all that happened in the stretch: functions by their own time, as
 * shares of the time in which it was busy.
 */
export function costsOf(folder: string, services: Roots, stretch: Stretch): string[] {
  return Object.entries(services).flatMap(([name, pids]) =>
    pids.flatMap((pid) => {
      const file = readdirSync(folder).find((one) => one.split('.')[3] === String(pid))
      if (file === undefined) return [`${name}: left no profile`]
      return [`${name}:`, ...costliest(JSON.parse(readFileSync(join(folder, file), 'utf8')) as Profile, stretch)]
    }),
  )
}

function costliest({ nodes, startTime, samples, timeDeltas }: Profile, { from, to }: Stretch) {
  const names = namesOf(nodes)
  const selfMicros = new Map<string, number>()
  let at = startTime
  for (const [n, id] of samples.entries()) {
    at += timeDeltas[n] ?? 0
    if (at < from || at > to) continue
    const name = names.get(id) ?? ''
    selfMicros.set(name, (selfMicros.get(name) ?? 0) + (timeDeltas[n] ?? 0))
  }
  selfMicros.delete('(idle)')
  const busy = [...selfMicros.values()].reduce((sum, micros) => sum + micros, 0)
  const wall = to - from
  const first = [...selfMicros].toSorted(([, a], [, b]) => b - a).slice(0, shown)
  const share = (micros: number, of: number) => `${((100 * micros) / of).toFixed(1)} %`
  const lines = first.map(([name, micros]) => `${share(micros, busy).padStart(8)}  ${name}`)
  return [`  busy ${share(busy, wall)} of the time`, ...lines]
}

/** Names each node; what the engine or Node does is named with the function that asked for it. */
function namesOf(nodes: Profile['nodes']) {
  const byId = new Map(nodes.map((node) => [node.id, node]))
  const names = new Map<number, string>()
  const visit = (id: number, asker: string) => {
    const node = byId.get(id)
    if (!node) return
    const { callFrame } = node
    const isWritten = callFrame.url.startsWith('file:') || callFrame.url.startsWith('/')
    names.set(id, isWritten || asker === '' ? nameOf(callFrame) : `${nameOf(callFrame)} for ${asker}`)
    for (const child of node.children ?? []) visit(child, isWritten ? nameOf(callFrame) : asker)
  }
  const [root] = nodes
  if (root) visit(root.id, '')
  return names
}

/** `parse (json.ts:12)`; what the engine does itself stands in parentheses already. */
function nameOf({ functionName, url, lineNumber }: CallFrame) {
  const place = url === '' ? '' : ` (${packageOf(url)}${basename(url)}:${lineNumber + 1})`
  return `${functionName || '(anonymous)'}${place}`
}

function packageOf(url: string) {
  const inside = url.split('/node_modules/').at(-1)
  if (inside === undefined || inside === url) return ''
  const [scope = '', name = ''] = inside.split('/')
  return scope.startsWith('@') ? `${scope}/${name}/` : `${scope}/`
}
