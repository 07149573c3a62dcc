import { setTimeout as sleep } from 'node:timers/promises'

/**
 * Starts the work so often a second, whatever became of what was started before; resolves when all is done, and rejects
 * then with the first failure.
 */
export async function pace(ratePerSecond: number, seconds: number, start: (n: number) => Promise<void>): Promise<void> {
  const startedAt = performance.now()
  const total = Math.round(ratePerSecond * seconds)
  const failures: unknown[] = []
  const work: Promise<void>[] = []
  while (work.length < total) {
    const due = Math.min(total, Math.floor(((performance.now() - startedAt) / 1000) * ratePerSecond) + 1)
    while (work.length < due) work.push(start(work.length).catch((err: unknown) => void failures.push(err)))
    await sleep(1)
  }
  await Promise.all(work)
  if (failures.length > 0) throw failures[0]
}
