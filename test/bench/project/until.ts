import { setTimeout as sleep } from 'node:timers/promises'

/** Looks until it is so. Rejects with the sentence when it is not within the time. */
export async function until(
  what: string,
  isSo: () => Promise<boolean>,
  timeoutMs: number,
  lookEveryMs = 100,
): Promise<void> {
  const endsAt = performance.now() + timeoutMs
  while (!(await isSo())) {
    if (performance.now() > endsAt) throw new Error(`Waited ${timeoutMs / 1000} s in vain until ${what}.`)
    await sleep(lookEveryMs)
  }
}
