import { expect } from 'vitest'
import type { BusStep, BusStepProxy, Loss } from './bus-step-proxy.ts'
import { between, type Random, randomOf } from './faults/random.ts'
import { amount, seed } from './fuzz/seed.ts'
import { until } from './until.ts'

export const losses: Loss[] = ['before', 'after', 'alone']

/** What the services say to JetStream and to each other, and what they are told. */
const isMessage = ({ verb, subject }: BusStep) => /MSG|PUB/.test(verb) && /^(_INBOX|event\.|rpc\.|\$JS)/.test(subject)

export interface LossyFlow {
  steps: BusStepProxy
  /** Once; throws what went wrong. */
  run: () => Promise<void>
  isBack: () => boolean
  /** What must be true in the end. */
  check?: () => Promise<void>
  close: () => Promise<void>
}

/**
 * Runs the flow once as it is, and once for each message that is lost: `npm test` takes `some` of them by the seed, `npm run
 * test:steps` all.
 */
export async function loseEach(loss: Loss, flow: LossyFlow, some = 3): Promise<void> {
  const { steps, run, check, close } = flow
  const counted = steps.count(isMessage)
  await run()
  const total = counted.steps().length
  expect(total).toBeGreaterThan(1)
  const random = randomOf(seed, loss)
  for (const at of stepsToLose(random, total, amount(some, Infinity))) await lose(flow, loss, at, random)
  await check?.()
  await close()
}

/** All of the steps, or some by the seed. */
function stepsToLose(random: Random, total: number, some: number): number[] {
  const all = Array.from({ length: total }, (_, index) => index + 1)
  while (all.length > some) all.splice(between(random, 0, all.length - 1), 1)
  return all
}

/** How often a loss is taken that meets nothing: some runs have a few messages less than another. */
const mostTaken = 5

async function lose({ steps, run, isBack }: LossyFlow, loss: Loss, planned: number, random: Random) {
  let at = planned
  for (let taken = 1; taken <= mostTaken; taken++) {
    const { steps: passed } = steps.count(isMessage, { at, loss })
    await run().catch((cause: unknown) => {
      const { way, subject } = passed()[at - 1] ?? {}
      throw new Error(`step ${at} lost ${loss}: ${way} ${subject}`, { cause })
    })
    // What is counted in the next run is none of this one's.
    steps.count(() => false)
    await until(() => expect(isBack()).toBe(true))
    const { length } = passed()
    if (length >= at) return
    at = between(random, 1, Math.max(1, length))
  }
  throw new Error(`not met in ${mostTaken} runs, the last time at step ${at}`)
}
