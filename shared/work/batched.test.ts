import { expect, test } from 'vitest'
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

test.each(['23505', '22P05'])('one row that the server refuses (%s) does not fail the others', async (code) => {
  const run = batched<number, number>((items) => {
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

test('more than may wait is refused at once', async () => {
  const run = batched<number, number>(() => new Promise(() => {}), { maxWaiting: 2, inFlight: 1 })
  void run(1)
  void run(2)
  await expect(run(3)).rejects.toMatchObject({ failure: 'service_unavailable' })
})
