import { setTimeout as sleep } from 'node:timers/promises'
import { isDatabaseAway, isPoolClosed } from './database.ts'

const retryMs = 250

/**
 * Runs a statement, and repeats it while the database is away; none begins after the deadline (a `performance.now()` time): then throws
 * its error. The statement may run twice, so it must be idempotent.
 */
export async function retryWhileAway<T>(statement: () => PromiseLike<T>, deadline: number): Promise<T> {
  for (;;) {
    try {
      return await statement()
    } catch (err) {
      if (!isDatabaseAway(err) || isPoolClosed(err) || performance.now() + retryMs >= deadline) throw err
      await sleep(retryMs)
    }
  }
}
