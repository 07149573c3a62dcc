import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { Supervised } from './supervise.ts'
import { untilReady } from './until-ready.ts'

const running: Supervised = {
  name: 'slow',
  logFile: '/none',
  pid: () => 1,
  deaths: () => 0,
  refusesSettings: () => false,
  lastWords: () => 'so far',
  isStopped: () => false,
  stop: async () => {},
  start: () => {},
}

test('what takes long to start is looked at less often the longer it takes', async () => {
  let looks = 0
  const startedAt = performance.now()
  const isReady = async () => {
    looks++
    return performance.now() - startedAt > 1_500
  }
  await untilReady(running, isReady, 10_000)
  // Every 20 ms there would be more than seventy.
  expect(looks).toBeLessThan(40)
})

test('what is not ready in time is given up with the end of its log', async () => {
  const never = () => sleep(1).then(() => false)
  await expect(untilReady(running, never, 200)).rejects.toThrow(
    'slow was not ready within 0 s. The end of /none:\nso far',
  )
})

test('what somebody has stopped is not waited for', async () => {
  const stopped = { ...running, isStopped: () => true }
  await expect(untilReady(stopped, async () => false, 10_000)).rejects.toThrow('slow was stopped before it was ready.')
})
