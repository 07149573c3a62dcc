import { setTimeout as sleep } from 'node:timers/promises'
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
