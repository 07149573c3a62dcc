import { setTimeout as sleep } from 'node:timers/promises'
import { Problem } from '@app/shared/api/problem.ts'
import { isDatabaseAway } from '@app/shared/database/database.ts'
import { expect, test } from 'vitest'
import { between, type Random, randomOf } from './faults/random.ts'
import { amount, seed } from './fuzz/seed.ts'
import type { Cut, StepProxy } from './step-proxy.ts'

/** One way through a service, of a tenant that nobody else is. */
interface Flow {
  /** What is asked of the service, each question with `insist` or `insistTwice`. */
  act: () => Promise<unknown>
  /** Until nothing of it waits any more, in less than a lease. What has a time of its own has it now. */
  settle?: () => Promise<unknown>
  /** What is there in the end, without what differs from run to run. */
  seen: () => Promise<unknown>
}

export interface SteppedFlow {
  begin: () => Promise<Flow>
  /** What is seen after a whole run, or the part of it that is worth writing down. */
  expected?: object
}

/** Shorter than any lease: a connection that was lost is no reason to wait for one. */
const insistMs = 8_000
const againMs = 50

/** As whoever asks does: the same again while the answer is that it passes; `asked` counts from 0. */
export async function insist<T>(ask: (asked: number) => Promise<T>): Promise<T> {
  const startedAt = performance.now()
  for (let asked = 0; ; asked++) {
    try {
      return await ask(asked)
    } catch (err) {
      if (!isPassing(err) || performance.now() - startedAt > insistMs) throw err
      await sleep(againMs)
    }
  }
}

/** The same, and what is asked once more is answered as at first. */
export async function insistTwice<T>(ask: (asked: number) => Promise<T>): Promise<T> {
  const first = await insist(ask)
  expect(await insist(ask)).toEqual(first)
  return first
}

/** What is answered with 503, or that the first try is still at it: whoever is told so asks again. */
const isPassing = (failure: unknown) =>
  isDatabaseAway(failure) ||
  (failure instanceof Problem &&
    ['service_unavailable', 'idempotency_in_progress', 'setup_in_progress'].includes(failure.failure))

/**
 * A test for each flow: it runs whole, then anew for each of its steps, with the connection to Postgres lost before the step,
 * after it, and twice in a row. What is there then is the same as after the whole run. `npm test` takes some of the steps, by
 * the seed.
 */
export function testEachStep(steps: () => StepProxy, flows: Record<string, SteppedFlow>): void {
  test.each(Object.entries(flows))(
    '%s: all or nothing, once, whichever step is lost',
    async (name, flow) => cutEachStep(steps(), name, flow),
    amount(30_000, 900_000),
  )
}

/** One flow of them. */
export async function cutEachStep(steps: StepProxy, name: string, { begin, expected = {} }: SteppedFlow) {
  const random = randomOf(seed, name)
  const whole = await run(steps, await begin())
  expect(whole.seen).toMatchObject(expected)
  expect(whole.steps, 'steps of the whole run').toBeGreaterThan(0)
  for (const planned of cutsOf(random, whole.steps)) {
    let cut: Cut | undefined = planned
    for (let taken = 1; cut; taken++) {
      const where = `${cut.when} step ${cut.at} of ${whole.steps}${cut.again ? `, and ${cut.again} behind it` : ''}`
      const cutRun: Run = await run(steps, await begin(), cut).catch((cause: unknown) => {
        throw new Error(`lost ${where}`, { cause })
      })
      expect(cutRun.seen, where).toEqual(whole.seen)
      cut = missed(random, cut, cutRun)
      if (cut && taken === mostTaken) throw new Error(`not met in ${taken} runs, the last time ${where}`)
    }
  }
}

interface Run {
  steps: number
  /** How often its cut was met. */
  losses: number
  seen: unknown
}

async function run(proxy: StepProxy, { act, settle, seen }: Flow, cut?: Cut): Promise<Run> {
  const count = proxy.count(cut)
  try {
    await act()
    await settle?.()
  } finally {
    // What is seen is seen without a cut.
    proxy.count()
  }
  return { steps: count.steps(), losses: await count.losses(), seen: await seen() }
}

/**
 * How often a cut is taken that meets nothing. Some flows have fewer steps in one run than in another, such as one that two
 * instances share; nearer to the beginning a cut is met all the same.
 */
const mostTaken = 8

/** The cut in place of one of which a part was not met: at most half as far. Nothing, if it was met whole. */
function missed(random: Random, cut: Cut, { steps, losses }: Run): Cut | undefined {
  const { at, again } = cut
  const upTo = (most: number) => between(random, 1, Math.max(1, Math.floor(most)))
  if (losses === 0) return { ...cut, at: upTo(Math.min(steps, at / 2)) }
  if (again === undefined || losses === 2) return undefined
  if (steps > at) return { ...cut, again: upTo(Math.min(steps - at, again / 2)) }
  // Nothing came behind the last step, whose loss was no reason to do anything again.
  return { ...cut, at: upTo(at / 2), again: 1 }
}

const cutsOfOne = amount(1, Infinity)

/** All of them, or some by the seed. The second of two is at the same step for whoever does the same again from the first one on. */
function cutsOf(random: Random, steps: number): Cut[] {
  const all = Array.from({ length: steps }, (_, n) => n + 1).flatMap((at): Cut[] => [
    { at, when: 'before' },
    { at, when: 'after' },
    { at, when: at % 2 === 0 ? 'after' : 'before', again: at },
  ])
  while (all.length > cutsOfOne) all.splice(between(random, 0, all.length - 1), 1)
  return all
}
