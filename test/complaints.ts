import { tookTooLong } from '@app/shared/database/database.ts'
import type { TestService } from './service.ts'

type Log = TestService['log']

/**
 * A log beside `log`, and what instances complain of there: errors, but for what a busy machine had no time for, and deadlocks.
 * Connections that were ended are no reason to.
 */
export function listenIn(log: Log): { log: Log; complaints: unknown[] } {
  const complaints: unknown[] = []
  const own = log.child({})
  own.error = (line: unknown) => void (tookTooLong(errorOf(line)) || complaints.push(line))
  own.warn = (line: unknown) => void (isDeadlock(errorOf(line)) && complaints.push(line))
  return { log: own, complaints }
}

const errorOf = (line: unknown) => (typeof line === 'object' && line !== null && 'err' in line ? line.err : undefined)

export const isDeadlock = (err: unknown): boolean => err instanceof Error && 'code' in err && err.code === '40P01'
