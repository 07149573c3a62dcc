import { setTimeout as sleep } from 'node:timers/promises'
import { freezeFor } from '@app/test/freeze.ts'
import { expect, onTestFinished, test, vi } from 'vitest'
import { createTurnstile } from './turnstile.ts'

/** Enters attempts of a lane by number, and notes what became of them. */
function trial(patienceMs = 10_000) {
  const turnstile = createTurnstile({ atOnce: 2, patienceMs })
  let entered = 0
  const out: number[] = []
  const back: number[] = []
  const ours = {}
  const leaves = new Map<number, (goesOn: boolean) => void>()
  return {
    inside: () => entered - out.length - back.length,
    out,
    back,
    enter: (numbers: number[], hold: object = ours) => {
      entered += numbers.length
      for (const number of numbers) {
        void turnstile.enter(hold).then((leave) => {
          if (!leave) return back.push(number)
          leaves.set(number, leave)
          return out.push(number)
        })
      }
      return sleep(1)
    },
    leave: async (number: number, goesOn = true) => {
      leaves.get(number)?.(goesOn)
      await sleep(1)
    },
  }
}

test('so many are outside, and the next goes out when one ends, in their order', async () => {
  const { inside, out, back, enter, leave } = trial()
  await enter([1, 2, 3, 4, 5])
  expect([out, inside()]).toEqual([[1, 2], 3])
  await leave(2)
  expect([out, inside()]).toEqual([[1, 2, 3], 2])
  await leave(1)
  await leave(3)
  expect([out, inside(), back]).toEqual([[1, 2, 3, 4, 5], 0, []])
})

test('a failure sends back those that wait, and later ones may go out again', async () => {
  const { inside, out, back, enter, leave } = trial()
  await enter([1, 2, 3, 4])
  await leave(1, false)
  expect([out, back, inside()]).toEqual([[1, 2], [3, 4], 0])
  await enter([5, 6])
  expect([out, inside()]).toEqual([[1, 2, 5], 1])
  await leave(2)
  expect(out).toEqual([1, 2, 5, 6])
})

test('one that has waited too long goes back, with those behind it, and one that got out in time does not', async () => {
  const { out, back, enter, leave } = trial(40)
  await enter([1, 2, 3])
  await leave(1)
  await enter([4, 5])
  await sleep(60)
  expect([out, back]).toEqual([
    [1, 2, 3],
    [4, 5],
  ])
})

test('the time of one that got out is nothing to those behind it', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
  onTestFinished(() => void vi.useRealTimers())
  const { out, back, enter, leave } = trial(40)
  await enter([1, 2, 3])
  await leave(1)
  vi.advanceTimersByTime(30)
  await enter([4])
  vi.advanceTimersByTime(30)
  await leave(2)
  expect([out, back]).toEqual([[1, 2, 3, 4], []])
})

test('an end that is heard of late lets nobody out: its process was frozen', async () => {
  const { out, back, enter, leave } = trial(40)
  await enter([1, 2, 3])
  freezeFor(60)
  await leave(1)
  expect([out, back]).toEqual([[1, 2], [3]])
})

test('lanes do not wait for each other, nor does a new hold for what an earlier one left outside', async () => {
  const { out, enter } = trial()
  await enter([1, 2, 3])
  await enter([11, 12, 13], {})
  expect(out).toEqual([1, 2, 11, 12])
})
