import { expect, test } from 'vitest'
import { systemCaller } from './ask.ts'
import { createListsInTurn } from './lists-in-turn.ts'

/** Lists that are made when they are told: how many are being made, and the end of all of these. */
function listsOf() {
  const inTurn = createListsInTurn()
  let making: ((bytes: number) => void)[] = []
  return {
    ask: (organization: string, count = 1) =>
      Array.from({ length: count }, () =>
        inTurn(systemCaller(organization), () => {
          const { promise, resolve } = Promise.withResolvers<number>()
          making.push(resolve)
          return promise.then((length) => ({ body: new Uint8Array(length) }))
        }),
      ),
    count: () => making.length,
    end: async (bytes: number) => {
      const ended = making
      making = []
      for (const end of ended) end(bytes)
      await new Promise((resolve) => setImmediate(resolve))
    },
  }
}

test('large lists of an organization are made one at a time, small ones many at a time, and those of another do not wait', async () => {
  const { ask, count, end } = listsOf()
  void ask('org_1', 300)
  expect(count()).toBe(8)
  void ask('org_2')
  expect(count()).toBe(9)
  await end(2_000_000)
  expect(count()).toBe(1)
  void ask('org_2', 3)
  expect(count()).toBe(4)
  const counts: number[] = []
  for (let n = 0; n < 60; n++) {
    await end(1_000)
    counts.push(count())
  }
  expect(Math.max(...counts)).toBeGreaterThan(32)
  expect(Math.max(...counts)).toBeLessThanOrEqual(64)
})

test('all are made at last, and what nobody waits for any more is not', async () => {
  const { ask, count, end } = listsOf()
  const asked = ask('org_1', 20)
  while (count() > 0) await end(3_000_000)
  expect(await Promise.all(asked)).toHaveLength(20)

  const inTurn = createListsInTurn()
  const held = Promise.withResolvers<void>()
  const made = () => held.promise.then(() => ({ body: new Uint8Array() }))
  const first = Array.from({ length: 8 }, () => inTurn(systemCaller('org_1'), made))
  const late = inTurn({ ...systemCaller('org_1'), deadline: performance.now() - 1 }, made)
  held.resolve()
  await expect(late).rejects.toMatchObject({ failure: 'service_unavailable' })
  expect(await Promise.all(first)).toHaveLength(8)
})

test('one that fails gives its turn back', async () => {
  const inTurn = createListsInTurn()
  const fail = () => Promise.reject(new Error('no list'))
  const failed = Array.from({ length: 30 }, () => inTurn(systemCaller('org_1'), fail))
  expect((await Promise.allSettled(failed)).every(({ status }) => status === 'rejected')).toBe(true)
})
