import { expect, test } from 'vitest'
import { createItemFloors } from './item-floors.ts'

/** Floors of a lane, at a clock that the test sets. */
function trial() {
  let nowMs = 0
  const floors = createItemFloors(() => nowMs)
  return {
    look: (firstSeq: number | null, tookMs: number) =>
      floors.looked([{ laneId: 'one', from: floors.from('one'), firstSeq }], tookMs),
    state: (laneId = 'one') => [floors.from(laneId), floors.restMs(laneId)],
    pass: (ms: number) => void (nowMs += ms),
  }
}

test('while looks are cheap each goes through all, and an empty lane sleeps', () => {
  const { look, state, pass } = trial()
  look(7, 20)
  pass(10_000)
  look(null, 20)
  expect(state()).toEqual([0, null])
})

test('a lane that was not looked through from its beginning does not sleep before it is', () => {
  const { look, state, pass } = trial()
  look(7, 3_000)
  expect([state(), state('another')]).toEqual([
    [0, null],
    [0, null],
  ])
  pass(10_000)
  expect(state()).toEqual([7, null])
  look(8, 5)
  expect(state()).toEqual([7, null])
  look(null, 5)
  expect(state()).toEqual([7, 20_000])
  pass(19_999)
  expect(state()).toEqual([8, 1])
  pass(1)
  look(null, 3_000)
  expect(state()).toEqual([8, null])
  look(null, 5)
  expect(state()).toEqual([8, 30_000])
  pass(30_000)
  look(null, 5)
  expect(state()).toEqual([0, null])
})
