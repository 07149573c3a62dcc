import { expect, test } from 'vitest'
import type { Lane } from '@app/shared/mailbox/lanes.ts'
import { createBegunAhead } from './begun-ahead.ts'

const lane: Lane = { id: 'wbs_1', group: 'org_1', arrivals: '0', heldUntil: '', failures: 0, pacedMs: 0 }

const laneOf = (group: string): Lane => ({ ...lane, group })
const answering = (ms: number, most: number) => createBegunAhead({ capacity: () => 10, answersIn: () => ms }, most)
/** Its endpoints get thirty more. */
const quick = (most: number) => answering(41, most)

test('a quick lane gets thirty more, as long as few wait of all lanes: promised, being begun, or waiting', async () => {
  const ahead = quick(60)
  const ask = () => [1, 2, 3].map(() => ahead.capacity(lane))
  // Four fifths of all are for one organization that is alone.
  expect(ask()).toEqual([40, 28, 10])
  const { promise, resolve } = Promise.withResolvers<void>()
  const beginning = ahead.beginning(() => promise)
  expect(ask()).toEqual([10, 10, 10])
  resolve()
  await beginning
  const waiting = Array.from({ length: 40 }, () => ahead.enter(lane))
  await new Promise((done) => setImmediate(done))
  expect(ask()).toEqual([28, 10, 10])
  const leaves = await Promise.all(waiting.slice(0, 10))
  leaves.forEach((leave) => leave?.(false))
  expect(await Promise.all(waiting.slice(10))).toEqual(Array.from({ length: 30 }, () => null))
})

test('however many quick lanes an organization has, another’s get some more, too, until they share alike', async () => {
  const ahead = quick(300)
  const more = (group: string) => ahead.capacity(laneOf(group)) - 10
  const all = (group: string) => Array.from({ length: 20 }, () => more(group)).reduce((sum, one) => sum + one)
  expect(all('org_1')).toBe(240)
  expect(more('org_2')).toBe(30)
  await ahead.beginning(() => Promise.resolve())
  // What they were given and have not begun is everybody's again, once.
  expect(all('org_3')).toBe(240)
  await ahead.beginning(() => Promise.resolve())
  expect(all('org_4')).toBe(240)
})

test.each([
  [0, 90],
  [13, 90],
  [14, 89],
  [50, 25],
  [51, 0],
  [Infinity, 0],
])('one that answers in %d ms gets as many more as it answers in an eighth of a second, at most 90: %i', (ms, more) => {
  expect(answering(ms, 1_000).capacity(lane)).toBe(10 + more)
})
