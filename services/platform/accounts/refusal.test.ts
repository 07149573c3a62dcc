import { expect, test } from 'vitest'
import { refusalOf } from './refusal.ts'

const sound = { status: 'connected', customerStatus: null, subscription: 'active', features: ['messaging'] } as const

test('nothing stands against a connected number of an active, entitled organization', () => {
  expect(refusalOf({ ...sound, features: ['messaging'] })).toBeNull()
})

test.each([
  ['disconnected', 'account_not_connected'],
  ['onboarding', 'chat_number_not_verified'],
  ['degraded', 'account_restricted'],
] as const)('%s comes before everything else: %s', (status, refusal) => {
  expect(refusalOf({ status, customerStatus: 'suspended', subscription: 'lapsed', features: [] })).toBe(refusal)
})

test.each(['suspended', 'archived'] as const)(
  'a customer that is %s comes before the organization',
  (customerStatus) => {
    expect(refusalOf({ ...sound, customerStatus, subscription: 'lapsed', features: [] })).toBe('customer_suspended')
  },
)

test.each(['pending', 'active'] as const)('a customer that is %s stands in no way', (customerStatus) => {
  expect(refusalOf({ ...sound, features: ['messaging'], customerStatus })).toBeNull()
})

test('a lapsed subscription comes before a missing entitlement', () => {
  expect(refusalOf({ ...sound, subscription: 'lapsed', features: [] })).toBe('subscription_inactive')
  expect(refusalOf({ ...sound, features: ['webhooks'] })).toBe('feature_not_entitled')
})
