import { pino } from 'pino'
import { expect, onTestFinished, test } from 'vitest'
import { startLoop } from './loop.ts'

const silent = pino({ level: 'silent' })

/** A loop that polls every few milliseconds, and what its turns were told. */
function startNoted() {
  const polls: boolean[] = []
  const loop = startLoop(silent, 'test', (isPoll) => Promise.resolve(polls.push(isPoll)).then(() => 4))
  onTestFinished(loop.stop)
  return { loop, polls }
}

test('a turn that somebody woke is told apart from a poll', async () => {
  const { loop, polls } = startNoted()
  loop.wake()
  await expect.poll(() => polls.slice(0, 3), { interval: 1 }).toEqual([false, true, true])
  const before = polls.length
  loop.wake()
  expect(polls[before]).toBe(false)
})

test('a poll in which somebody wakes it is followed by a turn that is none', async () => {
  const polls: boolean[] = []
  const loop = startLoop(silent, 'test', (isPoll) => {
    polls.push(isPoll)
    if (polls.length === 2) loop.wake()
    return Promise.resolve(polls.length < 3 ? 1 : Infinity)
  })
  onTestFinished(loop.stop)
  loop.wake()
  await expect.poll(() => polls, { interval: 1 }).toEqual([false, true, false])
})

test('a turn that fails now and then is repeated soon, as long as others succeed between', async () => {
  let turns = 0
  const loop = startLoop(silent, 'test', () => {
    if (++turns % 2 === 1) return Promise.reject(new Error('now and then'))
    return Promise.resolve(turns < 14 ? 0 : Infinity)
  })
  onTestFinished(loop.stop)
  const startedAt = performance.now()
  loop.wake()
  await expect.poll(() => turns, { interval: 1 }).toBe(14)
  expect(performance.now() - startedAt).toBeLessThan(4_000)
})
