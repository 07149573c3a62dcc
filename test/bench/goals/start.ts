import { oneAlone } from '../rounds.ts'
import type { Goal } from './goal.ts'

/** `npm start` where everything is installed and the data is there, from the command to the stack's being ready. */
export const measureStart: Goal = async ({ options, project }) => {
  const running = await project()
  const seconds: number[] = []
  for (let round = 0; round < options.rounds; round++) seconds.push((await running.restart()) / 1000)
  return { figures: [oneAlone('start', seconds, (value) => `${value.toFixed(1)} s`)] }
}
