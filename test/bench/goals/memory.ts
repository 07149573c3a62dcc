import type { Figure } from '../figures.ts'
import { allMemory, type Memory } from '../processes.ts'
import type { Goal } from './goal.ts'

/**
 * What the five services hold, before anything was asked of them, and at most, through all that was measured before: their
 * proportional sets, since they share the pages of one node; resident sets beside them.
 */
export const measureMemory: Goal = async (bench) => {
  const project = await bench.project()
  const [atRest, most] = [project.atRestMib, project.mostMib()]
  const figure = (name: 'memoryAtRest' | 'memoryLoaded', memory: Record<string, Memory>): Figure => {
    const { pss, rss } = allMemory(memory)
    return { name, rounds: [pss], from: `resident ${rss.toFixed(0)} MiB` }
  }
  return {
    figures: [figure('memoryAtRest', atRest), figure('memoryLoaded', most)],
    notes: [
      `memory at rest, proportional/resident: ${byService(atRest)} MiB`,
      `  when it was most in this run (${bench.options.goals.join(', ')}): ${byService(most)} MiB`,
    ],
    details: { atRest, most },
  }
}

const byService = (memory: Record<string, Memory>) =>
  Object.entries(memory)
    .map(([name, { pss, rss }]) => `${name} ${pss.toFixed(0)}/${rss.toFixed(0)}`)
    .join(' + ')
