import { setTimeout as sleep } from 'node:timers/promises'

/** Breaks something for a while. */
export async function during(forMs: number, begin: () => unknown, end: () => unknown) {
  try {
    await begin()
    await sleep(forMs)
  } finally {
    await end()
  }
}
