import { expect, test } from 'vitest'
import { first, seqFloor } from './seq-floor.ts'

function floorAt() {
  let ms = 100
  const floor = seqFloor(() => ms)
  return { ...floor, pass: (more: number) => (ms += more) }
}

test('while a look is cheap, each is one at all', () => {
  const { from, looked, settledBelow, pass } = floorAt()
  for (let seq = 1; seq < 100; seq++) {
    expect(from()).toBe(first)
    looked(first, 20)
    settledBelow(seq)
    pass(100)
  }
})

test('after a dear one they begin where all was settled ten seconds before, until ten times as long has passed', () => {
  const { from, looked, settledBelow, pass } = floorAt()
  looked(first, 3_000)
  settledBelow(7)
  pass(9_999)
  settledBelow(8)
  expect(from()).toBe(first)
  pass(1)
  expect(from()).toBe(7)
  looked(7, 500)
  settledBelow(9)
  pass(10_000)
  expect(from()).toBe(9)
  pass(9_999)
  expect(from()).toBe(9)
  pass(1)
  expect(from()).toBe(first)
  looked(first, 10)
  expect(from()).toBe(first)
})

test('when something waits again below, the next look is one at all', () => {
  const { from, looked, settledBelow, forget, pass } = floorAt()
  looked(first, 5_000)
  settledBelow(7)
  pass(10_000)
  expect(from()).toBe(7)
  forget()
  expect(from()).toBe(first)
  looked(first, 500)
  expect(from()).toBe(first)
})

test('an event below that was seen and waits on is seen by each look, too', () => {
  const { from, looked, settledBelow, pass } = floorAt()
  looked(first, 5_000)
  settledBelow(7)
  pass(10_000)
  settledBelow(9)
  expect(from()).toBe(7)
  settledBelow(3)
  expect(from()).toBe(3)
  pass(10_000)
  expect(from()).toBe(3)
})
