import { execFileSync } from 'node:child_process'

/** Those that a process has started, and that are still there. */
export function childrenOf(pid: number): number[] {
  try {
    return execFileSync('ps', ['-o', 'pid=', '--ppid', String(pid)], { encoding: 'utf8' })
      .split('\n')
      .map(Number)
      .filter(Boolean)
  } catch {
    // It says so when there are none.
    return []
  }
}
