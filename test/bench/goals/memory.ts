import { sumOf } from '../processes.ts'
import { oneAlone } from '../rounds.ts'
import type { Goal } from './goal.ts'

/** What the five services hold: before anything was asked of them, and at most, through all that was measured before. */
export const measureMemory: Goal = async (bench) => {
  const project = await bench.project()
  const [atRest, most] = [project.atRestMib, project.mostMib()]
  const show = (mib: number) => `${mib.toFixed(0)} MiB`
  const byService = (mib: Record<string, number>) =>
    Object.entries(mib)
      .map(([name, value]) => `${name} ${value.toFixed(0)}`)
      .join(' + ')
  return {
    figures: [oneAlone('memoryAtRest', [sumOf(atRest)], show), oneAlone('memoryLoaded', [sumOf(most)], show)],
    notes: [
      `memory at rest: ${byService(atRest)} MiB`,
      `  when it was most in this run (${bench.options.goals.join(', ')}): ${byService(most)} MiB`,
    ],
    details: { atRest, most },
  }
}
