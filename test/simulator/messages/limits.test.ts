import { expect, test } from 'vitest'
import { createSettings } from '../settings.ts'
import { createLimits } from './limits.ts'

/** How many of `count` sends at the moment `now` pass. */
function passing(limits: ReturnType<typeof createLimits>, count: number, now: number, recipient = 'ana', own?: number) {
  const passes = () => {
    try {
      limits.charge({ phoneNumberId: String(own ?? 1), throughputPerSecond: own ?? null }, recipient, now)
      return true
    } catch {
      return false
    }
  }
  return Array.from({ length: count }, passes).filter(Boolean).length
}

test('lends a pair 45 sends, which are paid back at one per 6 s', () => {
  const limits = createLimits(createSettings({ pair_limit: true }))
  expect(passing(limits, 50, 0)).toBe(45)
  expect(passing(limits, 50, 5_999)).toBe(0)
  expect(passing(limits, 50, 6_000)).toBe(1)
  expect(passing(limits, 50, 6_000, 'ben')).toBe(45)
  expect(passing(limits, 50, 6_000 + 45 * 6_000)).toBe(45)
})

test('lets a number send as many messages in a second as the setting says', () => {
  const limits = createLimits(createSettings({ throughput_per_second: 80 }))
  expect(passing(limits, 100, 1_000)).toBe(80)
  expect(passing(limits, 100, 1_999)).toBe(0)
  expect(passing(limits, 100, 2_000)).toBe(80)
})

test('lets a number that has a throughput of its own send as many', () => {
  const limits = createLimits(createSettings({ throughput_per_second: 80 }))
  expect(passing(limits, 100, 1_000, 'ana', 3)).toBe(3)
  expect(passing(limits, 100, 1_000)).toBe(80)
  expect(passing(createLimits(createSettings()), 100, 1_000, 'ana', 3)).toBe(3)
})

test('limits nothing by default', () => {
  expect(passing(createLimits(createSettings()), 1_000, 0)).toBe(1_000)
})
