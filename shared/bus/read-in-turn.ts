import { setImmediate, setTimeout as sleep } from 'node:timers/promises'
import { createLines } from '../work/turns.ts'

/** A body up to this size is read at once: that takes less than 2 ms. */
const smallBytes = 8 * 1024

/** Reads the body of an organization's question, which has so many bytes, in its turn. */
export type ReadInTurn = <T>(organizationId: string, bytes: number, read: () => T) => Promise<T>

/**
 * Of an organization one large body is read in a turn of the event loop, and the next when as much time has gone by again, so that others
 * are heard in between. 256 KiB of JSON take up to 60 ms to be parsed and checked: measured, at 200 connections of one organization
 * that sent such ones another one's requests took 10 to 25 s, or were a 503.
 */
export function createReadInTurn(): ReadInTurn {
  const inLine = createLines(1)
  return async (organizationId, bytes, read) => {
    if (bytes <= smallBytes) return read()
    return new Promise((resolve, reject) => {
      void inLine(organizationId, async () => {
        await setImmediate()
        const beganAt = performance.now()
        try {
          resolve(read())
        } catch (err) {
          reject(err)
        }
        await sleep(performance.now() - beganAt)
      })
    })
  }
}
