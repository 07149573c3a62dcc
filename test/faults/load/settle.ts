import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import { until } from '../../until.ts'
import { check } from '../history/check.ts'
import { gather } from './gather.ts'
import type { Person, Scene } from './person.ts'

/** What is under way may take its time; answers what is wrong after that. */
export async function settle(scene: Scene, people: Person[], forMs: number): Promise<string[]> {
  const endsAt = performance.now() + forMs
  const { length } = scene.history.calls
  for (;;) {
    // The lists are long, and read again and again.
    scene.history.calls = scene.history.calls.filter(({ status }, n) => n < length || status !== 200)
    await gather(scene, people)
    const breaches = check(scene.history)
    if (breaches.length === 0 || performance.now() > endsAt) return breaches
    await sleep(3_000)
  }
}

/** Waits until no send is under way, and no delivery stuck; for a history that is not whole. */
export const untilEnded = ({ history, ...scene }: Scene, people: Person[], forMs: number): Promise<void> =>
  until(async () => {
    await gather({ history, ...scene }, people)
    const open = [...history.endings].filter(([, { status }]) => status === 'pending').map(([id]) => id)
    // Customers are as they were.
    const stuck = history.shelves.flatMap(({ listed }) => listed.filter((one) => one.startsWith('wbd_')))
    expect([...open, ...stuck]).toEqual([])
  }, forMs)
