import { expect, test } from 'vitest'
import { leastWaitMs, retryAfterMs, retryDelayMs } from './schedule.ts'

const hour = 60 * 60 * 1000

test('twelve tries in 75 h 42 min', () => {
  const delays = Array.from({ length: 12 }, (_, tries) => retryDelayMs(tries + 1, 0.5))
  expect(delays.at(-1)).toBeNull()
  const sum = delays.reduce<number>((total, delay) => total + (delay ?? 0), 0)
  expect(sum).toBe(75 * hour + 42 * 60_000 + 35_000)
  expect(delays.slice(0, 4)).toEqual([5_000, 30_000, 120_000, 600_000])
})

test('the first two waits spread by half, the others by a fifth', () => {
  expect([retryDelayMs(1, 0), retryDelayMs(1, 1)]).toEqual([2_500, 7_500])
  expect([retryDelayMs(2, 0), retryDelayMs(2, 1)]).toEqual([15_000, 45_000])
  expect([retryDelayMs(3, 0), retryDelayMs(3, 1)]).toEqual([96_000, 144_000])
})

test('who asks for waits again and again gets 5 s at least, then twice as long each time, up to 5 minutes', () => {
  const waits = [0, 1, 2, 5, 6, 7, 2_000].map((before) => leastWaitMs(before, 0.5))
  expect(waits).toEqual([5_000, 10_000, 20_000, 160_000, 300_000, 300_000, 300_000])
  expect([leastWaitMs(0, 0), leastWaitMs(0, 1)]).toEqual([4_000, 6_000])
})

test.each([
  ['7', 7_000],
  [' 0 ', 0],
  ['Fri, 20 Nov 2026 10:00:30 GMT', 30_000],
  ['Fri, 20 Nov 2026 09:00:00 GMT', 0],
  ['999999999999999999999', 24 * hour],
  ['Fri, 20 Nov 2099 10:00:00 GMT', 24 * hour],
  ['soon', null],
  ['-5', null],
  ['1.5', null],
  [undefined, null],
])('Retry-After %j is %j ms', (header, ms) => {
  expect(retryAfterMs(header, Date.parse('2026-11-20T10:00:00Z'))).toBe(ms)
})
