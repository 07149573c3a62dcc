import { expect, test } from 'vitest'
import { rateTiers, tierOf } from './rate-tiers.ts'

test('the tiers are those of the documentation unless told otherwise', () => {
  expect(rateTiers.parse(undefined)).toEqual({
    starter: { write_per_minute: 60, read_per_minute: 600 },
    standard: { write_per_minute: 600, read_per_minute: 6_000 },
    pro: { write_per_minute: 6_000, read_per_minute: 60_000 },
    unlimited: { write_per_minute: 10_000_000, read_per_minute: 10_000_000 },
  })
})

test('a tier in the environment replaces that one alone', () => {
  const tiers = rateTiers.parse('{"pro":{"write_per_minute":1,"read_per_minute":2}}')
  expect(tierOf(tiers, 'pro')).toEqual({ name: 'pro', write_per_minute: 1, read_per_minute: 2 })
  expect(tierOf(tiers, 'starter')).toMatchObject({ write_per_minute: 60 })
})

test.each(['{', '{"gold":{"write_per_minute":1,"read_per_minute":2}}', '{"pro":{"write_per_minute":0}}'])(
  '%s is refused',
  (text) => {
    expect(rateTiers.safeParse(text).success).toBe(false)
  },
)
