import { describe, expect, test } from 'vitest'
import { pollAfterMs, statusAfter } from './standing.ts'

test.each([
  // status, reported, removed, the platform's word, the status after
  ['onboarding', false, false, 'CONNECTED', 'connected'],
  ['connected', false, false, 'PENDING', 'onboarding'],
  ['degraded', false, false, 'CONNECTED', 'connected'],
  ['disconnected', false, false, 'CONNECTED', 'connected'],
  ['connected', false, false, 'UNKNOWN', 'connected'],
  ['connected', false, false, null, 'connected'],
  ['degraded', true, false, 'CONNECTED', 'degraded'],
  ['degraded', true, false, 'BANNED', 'disconnected'],
  ['disconnected', true, false, 'CONNECTED', 'disconnected'],
  ['disconnected', false, true, 'CONNECTED', 'disconnected'],
] as const)('%s, reported %s, removed %s, %s: %s', (status, isReported, removed, word, after) => {
  expect(statusAfter({ status, isReported, removed }, word)).toBe(after)
})

describe('is asked for again', () => {
  const minutes = (status: 'connected' | 'degraded', isReported = false) => pollAfterMs({ status, isReported }) / 60_000

  test('after ten minutes, each minute while degraded or reported, spread by a tenth', () => {
    expect(Math.abs(minutes('connected') - 10)).toBeLessThanOrEqual(1)
    expect(Math.abs(minutes('degraded') - 1)).toBeLessThanOrEqual(0.1)
    expect(Math.abs(minutes('connected', true) - 1)).toBeLessThanOrEqual(0.1)
    expect(new Set(Array.from({ length: 20 }, () => minutes('connected'))).size).toBeGreaterThan(10)
  })
})
