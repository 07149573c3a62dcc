import { expect, test } from 'vitest'
import { connectionsWithin, openFilesLimit } from './open-files.ts'

test.each([
  [Infinity, 20_000],
  [1_048_576, 20_000],
  [40_064, 20_000],
  [20_000, 9_968],
  [1_024, 480],
  [20, 1],
])('with %i files there are %i connections, each with one for what it brings', (openFiles, connections) => {
  expect(connectionsWithin(openFiles, 20_000)).toBe(connections)
})

test('the system is asked how many files there may be', () => {
  expect(openFilesLimit()).toBeGreaterThan(100)
})
