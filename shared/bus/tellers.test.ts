import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createTellers, type Tellers } from './tellers.ts'

let tellers: Tellers
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance'] })
  tellers = createTellers()
  pass(60)
})
afterEach(() => {
  vi.useRealTimers()
})

const pass = (seconds: number) => vi.advanceTimersByTime(seconds * 1000)
const hear = (number: number, { teller = 'one', isLast = false } = {}) => tellers.heard({ teller, number, isLast })
/** Whether all that was told since that long ago was heard. */
const isWholeFor = (seconds: number) => tellers.wholeSince() <= performance.now() - seconds * 1000

/** Heard from its first word on, for a minute. */
function beats(from = 1) {
  for (let number = from; number < from + 30; number++) {
    hear(number)
    pass(2)
  }
}

test('who is heard without a gap from the first word on has told all', () => {
  beats()
  expect(isWholeFor(59)).toBe(true)
})

test('while nobody tells nothing is whole', () => {
  expect(tellers.wholeSince()).toBe(Infinity)
  beats()
  hear(31, { isLast: true })
  expect(tellers.wholeSince()).toBe(Infinity)
})

test('a gap, and a teller that is not heard from its first word on, break the whole', () => {
  beats()
  hear(32)
  expect(isWholeFor(1)).toBe(false)
  pass(1)
  expect(isWholeFor(1)).toBe(true)
  hear(7, { teller: 'other' })
  expect(isWholeFor(1)).toBe(false)
})

test('what cannot be read breaks the whole', () => {
  beats()
  tellers.missed()
  expect(isWholeFor(1)).toBe(false)
})

test('a teller that comes with its first word, or says that it ends, breaks nothing', () => {
  beats()
  hear(1, { teller: 'other' })
  hear(2, { teller: 'other', isLast: true })
  pass(3)
  expect(isWholeFor(60)).toBe(true)
})

test('while a teller is silent nothing is whole, also beside others, until it is heard again or gone for ten minutes', () => {
  hear(1, { teller: 'silent' })
  beats()
  expect(isWholeFor(1)).toBe(false)
  for (let n = 31; n <= 60; n++) {
    hear(n)
    pass(1)
  }
  expect(isWholeFor(1)).toBe(false)
  hear(2, { teller: 'silent' })
  pass(3)
  hear(61)
  expect(isWholeFor(2)).toBe(true)
  for (let n = 62; n <= 500; n++) {
    hear(n)
    pass(2)
    tellers.wholeSince()
  }
  expect(isWholeFor(100)).toBe(true)
  hear(3, { teller: 'silent' })
  expect(isWholeFor(1)).toBe(false)
})

test('in the first seconds not all tellers are known', () => {
  tellers = createTellers()
  hear(1)
  expect(isWholeFor(0)).toBe(false)
  pass(5)
  hear(2)
  expect(isWholeFor(0)).toBe(false)
  pass(2)
  expect(isWholeFor(0)).toBe(true)
})
