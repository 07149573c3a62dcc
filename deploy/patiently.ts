import { setTimeout as sleep } from 'node:timers/promises'

const againMs = 500

/** Tries again, for half a minute by default, what fails with something that may pass. */
export async function patiently<T>(
  work: () => Promise<T>,
  mayPass: (err: unknown) => boolean,
  patienceMs = 30_000,
): Promise<T> {
  const endsAt = performance.now() + patienceMs
  for (;;) {
    try {
      return await work()
    } catch (err) {
      if (!mayPass(err) || performance.now() > endsAt) throw err
    }
    await sleep(againMs)
  }
}
