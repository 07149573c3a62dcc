import { expect, test } from 'vitest'
import { epoch } from './epoch.ts'

test('a time of the platform that is in the future counts as now', () => {
  const before = Date.now()
  const time = epoch.parse(String(Math.floor(before / 1000) + 3_600)).getTime()
  expect(time).toBeGreaterThanOrEqual(before)
  expect(time).toBeLessThanOrEqual(Date.now())
})
