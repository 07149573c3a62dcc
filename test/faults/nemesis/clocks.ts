import { mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

/** The wall clocks of Node processes, each of which can be put wrong while it runs. */
export interface Clocks {
  /** Processes that are started with it can be put wrong, and so can those that they start. */
  env: Record<string, string>
  /** Ahead by so many milliseconds, or behind by less than none. */
  skew: (pid: number, byMs: number) => void
}

export function makeClocks(folder: string): Clocks {
  mkdirSync(folder)
  const preloaded = pathToFileURL(join(import.meta.dirname, 'skewable-clock.ts')).href
  return {
    env: { SKEWED_CLOCKS: folder, NODE_OPTIONS: `${process.env['NODE_OPTIONS'] ?? ''} --import ${preloaded}`.trim() },
    skew(pid, byMs) {
      const unfinished = join(folder, `${pid}.new`)
      writeFileSync(unfinished, String(byMs))
      // Whole or not at all, for whoever watches.
      renameSync(unfinished, join(folder, String(pid)))
    },
  }
}
