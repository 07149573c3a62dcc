import { setTimeout as sleep } from 'node:timers/promises'
import type { Supervised } from './supervise.ts'

const deathsBeforeGivingUp = 6
/** The longer it takes, the less often it is looked at: a look takes the time of what starts. */
const look = { soonMs: 20, seldomMs: 100, partOfWait: 0.1 }

/**
 * Waits until the check passes. When it does not within the time, or the process keeps dying or refuses its settings, the process is stopped,
 * and this rejects with a sentence and the end of its log.
 */
export async function untilReady(
  server: Supervised,
  isReady: () => Promise<boolean>,
  timeoutMs: number,
): Promise<void> {
  const deathsBefore = server.deaths()
  const startedAt = performance.now()
  while (!(await isReady().catch(() => false))) {
    if (server.isStopped()) throw new Error(`${server.name} was stopped before it was ready.`)
    if (server.refusesSettings()) await giveUp(server, 'cannot start with these settings')
    if (server.deaths() - deathsBefore >= deathsBeforeGivingUp) await giveUp(server, 'keeps ending')
    const waitedMs = performance.now() - startedAt
    if (waitedMs > timeoutMs) await giveUp(server, `was not ready within ${Math.round(timeoutMs / 1000)} s`)
    await sleep(Math.min(Math.max(look.soonMs, waitedMs * look.partOfWait), look.seldomMs))
  }
}

async function giveUp(server: Supervised, fault: string): Promise<never> {
  await server.stop()
  throw new Error(`${server.name} ${fault}. The end of ${server.logFile}:\n${server.lastWords()}`)
}
