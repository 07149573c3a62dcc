import { expect, test } from 'vitest'
import { statusOf } from './status.ts'

test.each([
  ['CONNECTED', 'connected'],
  ['FLAGGED', 'connected'],
  ['RATE_LIMITED', 'connected'],
  ['PENDING', 'onboarding'],
  ['UNVERIFIED', 'onboarding'],
  ['RESTRICTED', 'degraded'],
  ['ACCOUNT_RESTRICTION', 'degraded'],
  ['DISCONNECTED', 'disconnected'],
  ['BANNED', 'disconnected'],
  ['DELETED', 'disconnected'],
  ['MIGRATED', 'disconnected'],
  ['UNKNOWN', undefined],
  [null, undefined],
])('%s is %s', (word, status) => {
  expect(statusOf(word)).toBe(status)
})
