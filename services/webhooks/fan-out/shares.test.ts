import { expect, test } from 'vitest'
import { createShares } from './shares.ts'

test('a share is used up at once, or bit by bit, and comes back with time; another organization has its own', () => {
  let now = 1_000
  const shares = createShares(() => now)
  shares.charge('org_1', 3_999)
  expect(shares.isUsedUp('org_1')).toBe(false)
  shares.charge('org_1', 1)
  expect([shares.isUsedUp('org_1'), shares.isUsedUp('org_2')]).toEqual([true, false])
  now += 1
  expect(shares.isUsedUp('org_1')).toBe(false)
  shares.charge('org_1', 10_000)
  now += 2_400
  expect(shares.isUsedUp('org_1')).toBe(true)
  now += 200
  expect(shares.isUsedUp('org_1')).toBe(false)
})

test('nothing comes back while deliveries are made, however long that takes', () => {
  let now = 1_000
  const shares = createShares(() => now)
  for (let n = 0; n < 2; n++) {
    const since = now
    now += 3_000
    shares.charge('org_1', 2_000, since)
  }
  expect(shares.isUsedUp('org_1')).toBe(true)
})

test('what was begun before another charge counts once', () => {
  let now = 1_000
  const shares = createShares(() => now)
  const since = now
  now += 1_000
  shares.charge('org_1', 1_000)
  shares.charge('org_1', 1_000, since)
  expect(shares.isUsedUp('org_1')).toBe(false)
})
