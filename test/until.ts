import { setTimeout as sleep } from 'node:timers/promises'

const soonMs = 20
const seldomMs = 250

/** As it is, also where a test has put its own clock in its place. */
const now = performance.now.bind(performance)

/**
 * Waits for what must come; long enough for a machine that is busy with other things. The longer it takes, the less often it
 * is looked at: what is asked takes the time of what is waited for.
 */
export async function until<T>(check: () => T | Promise<T>, timeoutMs = 20_000): Promise<T> {
  const startedAt = now()
  for (;;) {
    try {
      return await check()
    } catch (err) {
      const waitedMs = now() - startedAt
      if (waitedMs > timeoutMs) throw err
      await sleep(Math.min(Math.max(soonMs, waitedMs / 10), seldomMs))
    }
  }
}
