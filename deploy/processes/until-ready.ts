import { setTimeout as sleep } from 'node:timers/promises'
import type { Supervised } from './supervise.ts'

const deathsBeforeGivingUp = 6
const lookEveryMs = 20

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
  const endsAt = performance.now() + timeoutMs
  while (!(await isReady().catch(() => false))) {
    if (server.isStopped()) throw new Error(`${server.name} was stopped before it was ready.`)
    if (server.refusesSettings()) await giveUp(server, 'cannot start with these settings')
    if (server.deaths() - deathsBefore >= deathsBeforeGivingUp) await giveUp(server, 'keeps ending')
    if (performance.now() > endsAt) await giveUp(server, `was not ready within ${Math.round(timeoutMs / 1000)} s`)
    await sleep(lookEveryMs)
  }
}

async function giveUp(server: Supervised, fault: string): Promise<never> {
  await server.stop()
  throw new Error(`${server.name} ${fault}. The end of ${server.logFile}:\n${server.lastWords()}`)
}
