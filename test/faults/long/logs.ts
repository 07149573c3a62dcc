import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Arena } from '../nemesis/arena.ts'

/** One for each request, however it ends: those are as many as the clients make. */
const ofRequests = ['rpc', 'http', 'callback item']

/** Lines that the services have written of themselves until now, by the name of the process. */
export function countLines({ stack }: Arena): Map<string, number> {
  const folder = join(stack.dataDir, 'logs')
  const counted = readdirSync(folder)
    .filter((file) => file !== 'simulator.log')
    .map((file) => [file, linesOf(join(folder, file)).filter(isOfItself).length] as const)
  return new Map(counted)
}

/** The most lines a second that one process has written since. */
export function busiest(arena: Arena, before: Map<string, number>, seconds: number) {
  const rates = [...countLines(arena)].map(([file, now]) => ({ file, rate: (now - (before.get(file) ?? 0)) / seconds }))
  return rates.toSorted((a, b) => b.rate - a.rate)[0] ?? { file: '', rate: 0 }
}

const linesOf = (path: string) => readFileSync(path, 'utf8').split('\n').filter(Boolean)

const isOfItself = (line: string) => !ofRequests.some((words) => line.endsWith(`"msg":"${words}"}`))
