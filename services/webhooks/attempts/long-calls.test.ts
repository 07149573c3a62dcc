import { expect, test } from 'vitest'
import { createLongCalls } from './long-calls.ts'

/** Calls at a clock that the test sets. */
function trial() {
  let nowMs = 0
  const { begin, count } = createLongCalls(() => nowMs)
  return { begin, count, pass: (ms: number) => void (nowMs += ms) }
}

test('a call counts when it has taken a second, until it ends', () => {
  const { begin, count, pass } = trial()
  const ends = [begin(1), begin(1)]
  pass(500)
  ends.push(begin(1))
  pass(499)
  expect(count()).toBe(0)
  pass(1)
  expect(count()).toBe(2)
  ends[0]?.()
  expect(count()).toBe(1)
  pass(500)
  expect(count()).toBe(2)
  for (const end of ends) end()
  expect(count()).toBe(0)
})

test('two thousand count, the oldest; the next one does when one of them has ended', () => {
  const { begin, count, pass } = trial()
  const [first, ...others] = Array.from({ length: 2_001 }, () => begin(1))
  pass(1_000)
  expect(count()).toBe(2_000)
  others.at(-1)?.()
  expect(count()).toBe(2_000)
  first?.()
  expect(count()).toBe(1_999)
})

test('those count whose bodies have 64 MiB together', () => {
  const { begin, count, pass } = trial()
  const ends = Array.from({ length: 3 }, () => begin(32 * 1024 * 1024))
  pass(1_000)
  expect(count()).toBe(2)
  ends[1]?.()
  expect(count()).toBe(2)
  ends[0]?.()
  expect(count()).toBe(1)
})
