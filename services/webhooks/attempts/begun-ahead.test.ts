import { expect, test } from 'vitest'
import type { Lane } from '@app/shared/mailbox/lanes.ts'
import { createBegunAhead } from './begun-ahead.ts'

const lane: Lane = { id: 'wbs_1', group: 'org_1', arrivals: '0', heldUntil: '', failures: 0, pacedMs: 0 }

test('a quick lane gets thirty more, as long as few wait of all lanes: promised, being begun, or waiting', async () => {
  const ahead = createBegunAhead({ capacity: () => 10, isQuick: () => true }, 60)
  const ask = () => [1, 2, 3].map(() => ahead.capacity(lane))
  expect(ask()).toEqual([40, 40, 10])
  const { promise, resolve } = Promise.withResolvers<void>()
  const beginning = ahead.beginning(() => promise)
  expect(ask()).toEqual([10, 10, 10])
  resolve()
  await beginning
  const waiting = Array.from({ length: 40 }, () => ahead.enter(lane))
  expect(ask()).toEqual([40, 10, 10])
  const leaves = await Promise.all(waiting.slice(0, 10))
  leaves.forEach((leave) => leave?.(false))
  expect(await Promise.all(waiting.slice(10))).toEqual(Array.from({ length: 30 }, () => null))
})

test('one that is not quick gets what its health allows', () => {
  const ahead = createBegunAhead({ capacity: () => 4, isQuick: () => false }, 60)
  expect(ahead.capacity(lane)).toBe(4)
})
