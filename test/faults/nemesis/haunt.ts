import { setTimeout as sleep } from 'node:timers/promises'
import { faultOf, faults, type Ground } from './faults.ts'
import { lineOf, planOf, type Step } from './plan.ts'

/** Does what the seed has planned, and undoes it: when this resolves, nothing is broken by intent any more. */
export async function haunt(ground: Ground, seed: number, seconds: number, say: (line: string) => void) {
  const startedAt = performance.now()
  const under: Array<Promise<unknown>> = []
  for (const step of planOf(seed, seconds, Object.keys(faults))) {
    await sleep(step.atMs - (performance.now() - startedAt))
    say(lineOf(step))
    under.push(harm(ground, step))
  }
  await Promise.all(under)
  for (const { proxy } of Object.values(ground.arena.servers)) proxy.heal()
  await ground.platform.clearFaults()
}

async function harm(ground: Ground, step: Step) {
  try {
    await faultOf(step.fault)(ground, step.aim)
  } catch (err) {
    throw new Error(`"${step.fault}" itself went wrong`, { cause: err })
  }
}
