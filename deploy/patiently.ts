import { setTimeout as sleep } from 'node:timers/promises'

const patienceMs = 30_000
const againMs = 500

/** Tries again, for half a minute, what fails with something that may pass. */
export async function patiently<T>(work: () => Promise<T>, mayPass: (err: unknown) => boolean): Promise<T> {
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
