import { expect, test } from 'vitest'
import { slopeOf } from './slope.ts'

test('the slope of a line, of a line with noise on both sides, and of what stands still', () => {
  const line = [0, 1, 2, 3].map((at) => ({ at, value: 5 + 2 * at }))
  expect(slopeOf(line)).toBeCloseTo(2)
  const noisy = line.map(({ at, value }) => ({ at, value: value + (at % 3 === 0 ? 1 : -1) }))
  expect(slopeOf(noisy)).toBeCloseTo(2)
  expect(slopeOf([0, 1, 2].map((at) => ({ at, value: 7 })))).toBe(0)
})

test('there is none through one time', () => {
  expect(slopeOf([{ at: 1, value: 2 }])).toBeNaN()
})
