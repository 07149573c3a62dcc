import { setTimeout as sleep } from 'node:timers/promises'
import type { Dispatcher } from 'undici'

/** Before each next try; less than a client waits. */
const pausesMs = [100, 400, 1_600]
/** What failed so late is not tried again: the server is slow or away, and somebody waits. */
const lateMs = 5_000

/**
 * Asks again when the store says that it cannot now. S3 does so whenever many are there at once (503 SlowDown) or something behind it
 * failed (500), and expects a client to come back; a connection that it closes as idle just when it is used fails, too.
 */
export async function askPatiently(ask: () => Promise<Dispatcher.ResponseData>): Promise<Dispatcher.ResponseData> {
  const startedAt = performance.now()
  const isLate = () => performance.now() - startedAt > lateMs
  for (const pauseMs of pausesMs) {
    try {
      const answer = await ask()
      if (!mayPass(answer.statusCode) || isLate()) return answer
      await answer.body.dump()
    } catch (err) {
      if (isLate()) throw err
    }
    // Those who were turned away together do not come back together.
    await sleep(pauseMs * (0.5 + Math.random() / 2))
  }
  return ask()
}

const mayPass = (status: number) => status === 429 || status === 500 || (status >= 502 && status <= 504)
