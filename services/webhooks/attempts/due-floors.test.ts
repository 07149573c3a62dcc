import { expect, test } from 'vitest'
import { createDueFloors } from './due-floors.ts'

test('each lane has a floor of its own, while looks at it are dear', () => {
  let nowMs = 0
  const floors = createDueFloors(() => nowMs)
  floors.looked([{ laneId: 'one', from: null, floor: 7 }], 100)
  floors.looked([{ laneId: 'another', from: null, floor: 9 }], 200)
  floors.looked([{ laneId: 'cheap', from: null, floor: 9 }], 20)
  const seen = () => ['one', 'another', 'cheap'].map((laneId) => [floors.from(laneId), floors.restMs(laneId)])
  expect(seen()).toEqual([
    [7, 1_000],
    [9, 2_000],
    [null, 0],
  ])
  nowMs = 1_000
  floors.looked([{ laneId: 'one', from: null, floor: 8 }], 1)
  expect(seen()).toEqual([
    [null, 0],
    [9, 1_000],
    [null, 0],
  ])
})
