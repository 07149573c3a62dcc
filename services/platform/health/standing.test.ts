import { describe, expect, test } from 'vitest'
import { pollAfterMs, statusAfter } from './standing.ts'

const now = new Date('2026-03-01T12:00:00Z')
const soon = new Date('2026-03-01T12:00:30Z')
const past = new Date('2026-03-01T11:59:59Z')

test.each([
  // status, reportedUntil, removed, the platform's word, the status after
  ['onboarding', null, false, 'CONNECTED', 'connected'],
  ['connected', null, false, 'PENDING', 'onboarding'],
  ['degraded', null, false, 'CONNECTED', 'connected'],
  ['disconnected', null, false, 'CONNECTED', 'connected'],
  ['connected', null, false, 'UNKNOWN', 'connected'],
  ['connected', null, false, null, 'connected'],
  ['degraded', soon, false, 'CONNECTED', 'degraded'],
  ['degraded', soon, false, 'BANNED', 'disconnected'],
  ['disconnected', soon, false, 'CONNECTED', 'disconnected'],
  ['degraded', past, false, 'CONNECTED', 'connected'],
  ['disconnected', null, true, 'CONNECTED', 'disconnected'],
] as const)('%s, reported until %s, removed %s, %s: %s', (status, reportedUntil, removed, word, after) => {
  expect(statusAfter({ status, reportedUntil, removed }, word, now)).toBe(after)
})

describe('is asked for again', () => {
  const minutes = (status: 'connected' | 'degraded', reportedUntil: Date | null = null) =>
    pollAfterMs({ status, reportedUntil }, now) / 60_000

  test('after ten minutes, each minute while degraded or reported, spread by a tenth', () => {
    expect(Math.abs(minutes('connected') - 10)).toBeLessThanOrEqual(1)
    expect(Math.abs(minutes('degraded') - 1)).toBeLessThanOrEqual(0.1)
    expect(Math.abs(minutes('connected', soon) - 1)).toBeLessThanOrEqual(0.1)
    expect(new Set(Array.from({ length: 20 }, () => minutes('connected'))).size).toBeGreaterThan(10)
  })
})
