import { setTimeout as sleep } from 'node:timers/promises'
import { between, type Random, randomOf } from './faults/random.ts'
import { amount, seed } from './fuzz/seed.ts'

/** Who acts at a time, and how often each. */
const actors = 6
const steps = amount(60, 400)

/** Many act at once, each again and again, by chances of its own. */
export async function actTogether(act: (random: Random) => unknown): Promise<void> {
  await Promise.all(Array.from({ length: actors }, (_, n) => actOften(act, randomOf(seed, `actor ${n}`))))
}

async function actOften(act: (random: Random) => unknown, random: Random) {
  for (let step = 0; step < steps; step++) {
    await sleep(between(random, 0, 30))
    await act(random)
  }
}
