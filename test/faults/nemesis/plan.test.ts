import { expect, test } from 'vitest'
import { planOf } from './plan.ts'

const names = ['a', 'b', 'c', 'd']

test('the same seed plans the same, another one something else', () => {
  expect(planOf(1, 60, names)).toEqual(planOf(1, 60, names))
  expect(planOf(1, 60, names)).not.toEqual(planOf(2, 60, names))
})

test('every fault comes before one comes again, and the beginning and the end are quiet', () => {
  const steps = planOf(7, 60, names)
  expect(new Set(steps.slice(0, 4).map(({ fault }) => fault)).size).toBe(4)
  expect(Math.min(...steps.map(({ atMs }) => atMs))).toBeGreaterThanOrEqual(4_000)
  expect(Math.max(...steps.map(({ atMs }) => atMs))).toBeLessThan(54_000)
})
