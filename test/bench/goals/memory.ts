import { oneAlone } from '../rounds.ts'
import type { Goal } from './goal.ts'

/** What the five services hold: before anything was asked of them, and at most, through all that was measured before. */
export const measureMemory: Goal = async (bench) => {
  const project = await bench.project()
  const show = (mib: number) => `${mib.toFixed(0)} MiB`
  return {
    figures: [oneAlone('memoryAtRest', [project.atRestMib], show), oneAlone('memoryLoaded', [project.mostMib()], show)],
    notes: [
      `memory under load: the most that the five services held together during this run (${bench.options.goals.join(', ')})`,
    ],
  }
}
