import { expect, test } from 'vitest'
import { median, quantile } from './median.ts'

test('takes the middle one, or the mean of the two in the middle', () => {
  expect(median([3, 1, 2])).toBe(2)
  expect(median([4, 1, 3, 2])).toBe(2.5)
  expect(median([7])).toBe(7)
  expect(median([])).toBeNaN()
})

test('takes the nearest rank', () => {
  const hundred = Array.from({ length: 100 }, (_, n) => 100 - n)
  expect(quantile(hundred, 0.5)).toBe(50)
  expect(quantile(hundred, 0.99)).toBe(99)
  expect(quantile(hundred, 1)).toBe(100)
  expect(quantile([5], 0.01)).toBe(5)
  expect(quantile([], 0.5)).toBeNaN()
})
