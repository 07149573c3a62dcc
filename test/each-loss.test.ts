import { expect, test } from 'vitest'
import type { BusStep, BusStepProxy } from './bus-step-proxy.ts'
import { type LossyFlow, loseEach } from './each-loss.ts'
import { amount } from './fuzz/seed.ts'

const message: BusStep = { way: 'out', verb: 'PUB', subject: 'rpc.platform.keep', text: '' }

/** So many messages in each run, the last number in all that follow; `lost` are those that were. */
function flowOf(...numbers: number[]) {
  let runs = 0
  let passed: BusStep[] = []
  let at: number | undefined
  const lost: number[] = []
  const steps: BusStepProxy = {
    url: '',
    count(_matters, loss) {
      const counted: BusStep[] = []
      passed = counted
      at = loss?.at
      return { steps: () => counted, lost: Promise.resolve() }
    },
    close() {},
  }
  const flow: LossyFlow = {
    steps,
    run() {
      const messages = numbers[Math.min(runs++, numbers.length - 1)] ?? 0
      passed.push(...Array.from({ length: messages }, () => message))
      if (at !== undefined && at <= messages) lost.push(at)
      return Promise.resolve()
    },
    isBack: () => true,
    close: () => Promise.resolve(),
  }
  return { flow, lost }
}

test('a loss that meets nothing, since a run has fewer messages than the whole one, is taken again where it has some', async () => {
  const { flow, lost } = flowOf(40, 2)
  await loseEach('before', flow)
  expect(lost).toHaveLength(amount(3, 40))
})

test.each([
  ['whose losses are never met', [3, 0], 'not met in 5 runs'],
  ['without a message', [0], 'greater than'],
])('a flow %s fails', async (_name, numbers, told) => {
  await expect(loseEach('after', flowOf(...numbers).flow)).rejects.toThrow(told)
})
