import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { mayTakeLapsed, noteOutage, noteSlow } from './outage.ts'

const leaseMs = 30_000
let box: Parameters<typeof mayTakeLapsed>[0]
beforeAll(() => {
  vi.useFakeTimers({ toFake: ['performance'] })
})
afterAll(() => {
  vi.useRealTimers()
})
beforeEach(() => {
  box = { awaySince: null, patientUntil: -Infinity, leaseMs }
})

/** A turn of a loop that fails, and the wait for the next one. */
async function fail(code: string, waitMs: number) {
  const turn = () => Promise.reject(Object.assign(new Error('failed'), { code }))
  await expect(noteOutage(box, turn)).rejects.toThrow('failed')
  vi.advanceTimersByTime(waitMs)
}
const mayTake = (askedForMs = 0) => mayTakeLapsed(box, performance.now() - askedForMs)

test('an outage counts from its first failure: after a long one lapsed leases are left for five seconds, and no longer', async () => {
  for (let n = 0; n < 5; n++) await fail('ECONNREFUSED', 2_500)
  expect(mayTake()).toBe(false)
  vi.advanceTimersByTime(4_999)
  expect(mayTake()).toBe(false)
  vi.advanceTimersByTime(1)
  expect(mayTake()).toBe(true)
})

test('an answer that was long on its way counts as an outage', () => {
  expect(mayTake(leaseMs / 3 + 1)).toBe(false)
})

test('lapsed leases are taken at once after an outage in which all could renew theirs, and after failures of other kinds', async () => {
  for (let n = 0; n < 4; n++) await fail('ECONNREFUSED', 2_500)
  expect(mayTake()).toBe(true)
  for (let n = 0; n < 5; n++) await fail('23505', 2_500)
  expect(mayTake()).toBe(true)
})

test('what was answered late, though it was answered, counts as an outage for the next one', () => {
  noteSlow(box, performance.now() - leaseMs / 3 - 1)
  expect(mayTake()).toBe(false)
  vi.advanceTimersByTime(5_000)
  noteSlow(box, performance.now() - leaseMs / 3)
  // Of an answer that was in time nothing is left, however long it takes until the next one.
  vi.advanceTimersByTime(leaseMs)
  expect(mayTake()).toBe(true)
})
