/** A step of a plan, as `explain (analyze, format json)` shows it. */
interface Step {
  'Actual Rows': number
  'Actual Loops': number
  'Rows Removed by Filter'?: number
  'Rows Removed by Join Filter'?: number
  Plans?: Step[]
}

/** All steps of the plan that `explain` answered. */
export function stepsOf(explained: Iterable<Record<string, unknown>>): Step[] {
  const [row = {}] = explained
  const [plan] = Object.values(row)[0] as { Plan: Step }[]
  if (!plan) throw new Error('no plan')
  return withBelow(plan.Plan)
}

const withBelow = (step: Step): Step[] => [step, ...(step.Plans ?? []).flatMap(withBelow)]

/** The most rows that a single step read, thrown away or not. */
export const mostRows = (steps: Step[]): number => Math.max(...steps.map((step) => rowsOf(step) * step['Actual Loops']))

const rowsOf = (step: Step) =>
  step['Actual Rows'] + (step['Rows Removed by Filter'] ?? 0) + (step['Rows Removed by Join Filter'] ?? 0)
