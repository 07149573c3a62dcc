import { expect, test } from 'vitest'
import { createDueFloors } from './due-floors.ts'

/** Floors of a lane, at a clock that the test sets. */
function trial() {
  let nowMs = 0
  const floors = createDueFloors(() => nowMs)
  return {
    look: (floor: number | null, tookMs: number) =>
      floors.looked([{ laneId: 'one', from: floors.from('one'), floor }], tookMs),
    from: (laneId = 'one') => floors.from(laneId),
    restMs: () => floors.restMs('one'),
    pass: (ms: number) => void (nowMs += ms),
  }
}

test('while looks are cheap each goes through all', () => {
  const { look, from, restMs } = trial()
  look(7, 20)
  expect([from(), restMs()]).toEqual([null, 0])
})

test('after a dear one they begin at its floor, until ten times as long has passed', () => {
  const { look, from, restMs, pass } = trial()
  look(7, 21)
  expect([from(), from('another'), restMs()]).toEqual([7, null, 210])
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
