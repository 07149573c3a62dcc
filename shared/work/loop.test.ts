import { setTimeout as sleep } from 'node:timers/promises'
import { pino } from 'pino'
import { expect, onTestFinished, test, vi } from 'vitest'
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

test('whoever wakes it often gets no more polls than others', async () => {
  let turns = 0
  const loop = startLoop(silent, 'test', () => Promise.resolve(++turns).then(() => 300))
  onTestFinished(loop.stop)
  for (let n = 0; n < 20; n++) {
    loop.wake()
    await sleep(5)
  }
  const woken = turns
  await sleep(600)
  expect(turns - woken).toBeGreaterThanOrEqual(1)
  expect(turns - woken).toBeLessThanOrEqual(4)
})

test('turns begin no closer together than their spacing, the first at once', async () => {
  const begunAt: number[] = []
  const turn = () => Promise.resolve(begunAt.push(performance.now())).then(() => Infinity)
  const loop = startLoop(silent, 'test', turn, { spacingMs: 50 })
  onTestFinished(loop.stop)
  loop.wake()
  expect(begunAt).toHaveLength(1)
  for (let n = 2; n <= 4; n++) {
    loop.wake()
    await expect.poll(() => begunAt, { interval: 1 }).toHaveLength(n)
  }
  const gaps = begunAt.slice(1).map((at, n) => at - (begunAt[n] ?? 0))
  for (const gap of gaps) expect(gap).toBeGreaterThan(45)
})

test('who stops it waits for the turn that runs, and none comes after that', async () => {
  const gate = Promise.withResolvers<number>()
  let turns = 0
  const loop = startLoop(silent, 'test', () => (turns++ === 0 ? gate.promise : Promise.resolve(0)))
  loop.wake()
  let isStopped = false
  const stopping = loop.stop().then(() => (isStopped = true))
  await sleep(20)
  expect(isStopped).toBe(false)
  gate.resolve(0)
  await stopping
  loop.wake()
  await sleep(20)
  expect(turns).toBe(1)
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

test.each([
  ['a login that the database refuses', { code: '28P01', severity: 'FATAL' }, 'error'],
  ['a database that is away', { code: 'ECONNREFUSED' }, 'warn'],
  ['any other failure', {}, 'error'],
] as const)('%s is logged for whoever has to look at it', async (why, fields, level) => {
  const log = pino({ level: 'silent' })
  const [error, warn] = [vi.spyOn(log, 'error'), vi.spyOn(log, 'warn')]
  const err = Object.assign(new Error(why), fields)
  const loop = startLoop(log, 'test', () => Promise.reject(err))
  loop.wake()
  await expect.poll(() => error.mock.calls.length + warn.mock.calls.length, { interval: 1 }).toBe(1)
  await loop.stop()
  expect((level === 'error' ? error : warn).mock.calls).toEqual([[{ err, loop: 'test' }, expect.any(String)]])
})
