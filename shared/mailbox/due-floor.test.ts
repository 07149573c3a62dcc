import { expect, test } from 'vitest'
import { dueFloor } from './due-floor.ts'

/** A floor at a clock that the test sets. */
function trial() {
  let nowMs = 0
  const { looked, ...floor } = dueFloor(() => nowMs)
  return {
    ...floor,
    look: (told: number | null, tookMs: number) => looked({ from: floor.from(), floor: told }, tookMs),
    pass: (ms: number) => void (nowMs += ms),
  }
}

test('while looks are cheap each goes through all', () => {
  const { look, from, known, restMs } = trial()
  look(7, 20)
  expect([from(), known(), restMs()]).toEqual([null, null, 0])
})

test('after a dear one they begin at its floor, until ten times as long has passed', () => {
  const { look, from, restMs, pass } = trial()
  look(7, 21)
  expect([from(), restMs()]).toEqual([7, 210])
  pass(209)
  look(8, 3_000)
  expect([from(), restMs()]).toEqual([7, 1])
  pass(1)
  expect([from(), restMs()]).toEqual([null, 0])
  look(9, 100)
  expect([from(), restMs()]).toEqual([9, 1_000])
  pass(1_000)
  look(10, 1)
  expect([from(), restMs()]).toEqual([null, 0])
})

test('after one that took too long, and told nothing, they begin where the ones before did', () => {
  const { look, from, pass } = trial()
  look(null, 3_000)
  expect(from()).toBe(null)
  look(7, 3_000)
  pass(30_000)
  look(null, 3_000)
  expect(from()).toBe(7)
  pass(30_000)
  look(null, 5)
  expect(from()).toBe(null)
})

test('the floor is known until the next look at all has ended', () => {
  const { look, from, known, pass } = trial()
  look(7, 100)
  pass(60_000)
  expect([from(), known()]).toEqual([null, 7])
  look(9, 1)
  expect(known()).toBe(null)
})
