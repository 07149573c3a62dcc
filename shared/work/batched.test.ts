import { expect, onTestFinished, test, vi } from 'vitest'
import { batched } from './batched.ts'

const later = () => new Promise((resolve) => setTimeout(resolve, 5))

test('what comes while a batch is out goes together in the next, in its order', async () => {
  const batches: number[][] = []
  const double = batched<number, number>(
    async (items) => {
      batches.push(items)
      await later()
      return items.map((item) => item * 2)
    },
    { inFlight: 1, rows: 4 },
  )
  const answers = await Promise.all([1, 2, 3, 4, 5, 6, 7].map((item) => double(item)))
  expect(answers).toEqual([2, 4, 6, 8, 10, 12, 14])
  expect(batches).toEqual([
    [1, 2, 3, 4],
    [5, 6, 7],
  ])
})

const refusal = (code: string) => Object.assign(new Error(code), { code })

test.each(['23505', '22P05'])('one row that the server refuses (%s) fails no other, be they slow', async (code) => {
  let nowMs = 0
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => nowMs)
  onTestFinished(() => clock.mockRestore())
  const run = batched<number, number>((items) => {
    nowMs += 2_000
    if (items.includes(2)) return Promise.reject(refusal(code))
    return Promise.resolve(items)
  })
  const results = await Promise.allSettled([1, 2, 3].map((item) => run(item)))
  expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
})

test('one item that waits for a lock in vain does not fail the others, of a lock that all wait for not each learns alone', async () => {
  const ran: number[] = []
  const locked = new Set([2])
  const run = batched<number, number>(async (items) => {
    if (items.length === 1) ran.push(...items)
    if (!items.some((item) => locked.has(item))) return items
    if (items.length === 1) await new Promise((resolve) => setTimeout(resolve, 800))
    throw refusal('55P03')
  })
  const statuses = async () =>
    (await Promise.allSettled([1, 2, 3, 4, 5].map((item) => run(item)))).map(({ status }) => status)
  expect(await statuses()).toEqual(['fulfilled', 'rejected', 'fulfilled', 'fulfilled', 'fulfilled'])
  for (const item of [1, 3, 4, 5]) locked.add(item)
  ran.length = 0
  expect(await statuses()).toEqual(['rejected', 'rejected', 'rejected', 'rejected', 'rejected'])
  expect(ran).toEqual([1, 2])
})

test('a batch that may have been done is never run again', async () => {
  let runs = 0
  const run = batched<number, number>(() => {
    runs++
    return Promise.reject(refusal('CONNECTION_CLOSED'))
  })
  const results = await Promise.allSettled([1, 2, 3].map((item) => run(item)))
  expect(results.every(({ status }) => status === 'rejected')).toBe(true)
  expect(runs).toBe(1)
})

test('a batch holds no more than its bytes, and at least one item', async () => {
  const sizes: number[] = []
  const run = batched<number, number>(
    (items) => {
      sizes.push(items.length)
      return Promise.resolve(items)
    },
    { bytes: 10, sizeOf: (item) => item },
  )
  await Promise.all([4, 4, 4, 50, 1].map((item) => run(item)))
  expect(sizes).toEqual([2, 1, 1, 1])
})

test('where more waits than fits into a batch, owners take turns, each in its order; what waits longest is not overtaken again', async () => {
  const batches: string[][] = []
  const run = batched<string, string>(
    async (items) => {
      batches.push(items)
      await later()
      return items
    },
    { inFlight: 1, rows: 3, ownerOf: (item) => item.slice(0, 1) },
  )
  const asked = ['a1', 'a2', 'a3', 'a4', 'a5', 'b1', 'b2', 'c1', 'd1'].map(run)
  await asked[0]
  const late = ['b3', 'e1'].map(run)
  await Promise.all([...asked, ...late])
  expect(batches).toEqual([
    ['a1', 'b1', 'c1'],
    ['d1', 'a2', 'b2'],
    ['e1', 'a3', 'b3'],
    ['a4', 'a5'],
  ])
})

test('large items of one owner are many batches, and those of another do not wait for all of them', async () => {
  const ended: number[] = []
  const run = batched<number, number>(
    (items) => {
      ended.push(...items)
      return Promise.resolve(items)
    },
    { inFlight: 1, bytes: 10, sizeOf: (item) => item, ownerOf: (item) => (item > 10 ? 'large' : 'small') },
  )
  await Promise.all([50, 51, 52, 1, 2].map((item) => run(item)))
  expect(ended).toEqual([50, 1, 51, 2, 52])
})

test('more than may wait is refused at once', async () => {
  const run = batched<number, number>(() => new Promise(() => {}), { maxWaiting: 2, inFlight: 1 })
  void run(1)
  void run(2)
  await expect(run(3)).rejects.toMatchObject({ failure: 'service_unavailable' })
})
