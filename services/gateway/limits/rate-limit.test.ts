import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { createLog } from '@app/shared/service/log.ts'
import { newId } from '@app/shared/values/ids.ts'
import { isProgram, startPrivateServers } from '@app/test/servers.ts'
import { signal } from '@app/test/signal.ts'
import type { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, describe, expect, inject, onTestFinished, test, vi } from 'vitest'
import { addLease, type Budget, newBudget, spend, standingOf, usable } from './budget.ts'
import { budgetsIn, connectRedis } from './rate-lease.ts'
import { createRateLimiter, type RateLimiter } from './rate-limit.ts'

const log = createLog('test', 'silent')

async function connect(url: string) {
  const redis = connectRedis(url, log)
  await new Promise((resolve) => redis.once('ready', resolve))
  return redis
}

/** Takes at once as often as that; answers how many were granted. */
async function take(limiter: RateLimiter, budget: Budget, times: number) {
  const taken = await Promise.all(Array.from({ length: times }, async () => limiter.take(budget)))
  return taken.filter(Boolean).length
}

test('of leased tokens no more are spent at a moment than have not lapsed by then, however many are in hand', () => {
  const budget = newBudget('key', 60)
  const now = performance.now()
  // Its answer was a second on its way.
  addLease(budget, 10, 10_000, now - 1_000)
  let spent = 0
  for (; spent < 10 && usable(budget, now + 6_500) > 0; spent++) spend(budget, now + 6_500)
  expect(spent).toBe(3)
})

/** However late it answers: the machine may be busy with other things. */
const sharedIn = (redis: Redis) => budgetsIn(redis, 10_000)

describe('with Redis', () => {
  let redis: Redis
  beforeAll(async () => (redis = await connect(inject('redisUrl'))))
  afterAll(() => redis.disconnect())
  afterEach(() => vi.restoreAllMocks())

  const gateways = (count: number) => Array.from({ length: count }, () => createRateLimiter(sharedIn(redis), log))

  test.each([1, 7, 60, 600, 6_000])('a burst gets a whole budget of %d a minute, and no more', async (perMinute) => {
    const [limiter] = gateways(1) as [RateLimiter]
    const startedAt = performance.now()
    const budget = limiter.budget(newId('key'), perMinute)
    const granted = await take(limiter, budget, perMinute + 500)
    const refilled = ((performance.now() - startedAt) / 60_000) * perMinute
    expect(granted).toBeGreaterThanOrEqual(perMinute)
    expect(granted).toBeLessThanOrEqual(perMinute + Math.ceil(refilled))
  })

  test('one after the other, a burst gets a whole budget too', async () => {
    const [limiter] = gateways(1) as [RateLimiter]
    const budget = limiter.budget(newId('key'), 60)
    const startedAt = performance.now()
    let granted = 0
    for (let n = 0; n < 100; n++) if (await limiter.take(budget)) granted++
    expect(granted).toBeGreaterThanOrEqual(60)
    expect(granted).toBeLessThanOrEqual(61 + (performance.now() - startedAt) / 1_000)
  })

  test('the gateways together grant one budget', async () => {
    const all = gateways(5)
    const name = newId('key')
    const startedAt = performance.now()
    const granted = await Promise.all(all.map((limiter) => take(limiter, limiter.budget(name, 600), 400)))
    const sum = granted.reduce((a, b) => a + b)
    expect(sum).toBeGreaterThanOrEqual(600)
    expect(sum).toBeLessThanOrEqual(601 + (performance.now() - startedAt) / 100)
  })

  test('read and write budgets are apart, and so are keys', async () => {
    const [limiter] = gateways(1) as [RateLimiter]
    const [read, write, other] = ['read', 'write', 'other'].map((kind) => limiter.budget(`${newId('key')}:${kind}`, 5))
    for (const budget of [read, write, other]) expect(await take(limiter, budget as Budget, 10)).toBe(5)
  })

  test('a busy budget costs few calls', async () => {
    const shared = sharedIn(redis)
    const lease = vi.fn(shared.lease)
    const limiter = createRateLimiter({ ...shared, lease }, log)
    const budget = limiter.budget(newId('key'), 60_000)
    for (let n = 0; n < 10_000; n++) expect(await limiter.take(budget)).toBe(true)
    expect(lease.mock.calls.length).toBeLessThan(10)
  })

  test('what is used up is refused without asking Redis again', async () => {
    const shared = sharedIn(redis)
    const lease = vi.fn(shared.lease)
    const limiter = createRateLimiter({ ...shared, lease }, log)
    const name = newId('key')
    const [other] = gateways(1) as [RateLimiter]
    await take(other, other.budget(name, 60), 60)
    const budget = limiter.budget(name, 60)
    expect(await take(limiter, budget, 50)).toBe(0)
    expect(lease).toHaveBeenCalledOnce()
    expect(standingOf(budget)).toEqual({ remaining: 0, wholeInSeconds: 60, tokenInSeconds: 1 })
  })

  test('tokens that were leased and not spent lapse as the budget fills up', async () => {
    const [first, second] = gateways(2) as [RateLimiter, RateLimiter]
    const name = newId('key')
    const budget = first.budget(name, 6_000)
    expect(await first.take(budget)).toBe(true)
    expect(budget.inHand).toBeGreaterThan(500)
    // A tenth of a minute later the 600 of the lease are there in Redis again.
    const now = performance.now()
    vi.spyOn(performance, 'now').mockImplementation(() => now + 6_000)
    const emptiedAt = Date.now()
    await redis.del(name)
    expect(await take(second, second.budget(name, 6_000), 6_000)).toBe(6_000)
    // Some milliseconds went by meanwhile, of which each ten bring one.
    const granted = await take(first, budget, 100)
    expect(granted).toBeLessThan(20 + (Date.now() - emptiedAt) / 10)
  })

  test('a standing counts what is left, until when, and is whole after a while', async () => {
    const [limiter] = gateways(1) as [RateLimiter]
    const budget = limiter.budget(newId('key'), 600)
    const now = Math.floor(performance.now())
    const clock = vi.spyOn(performance, 'now').mockReturnValue(now)
    expect(standingOf(budget)).toMatchObject({ remaining: 600, wholeInSeconds: 0 })
    await take(limiter, budget, 100)
    expect(standingOf(budget)).toMatchObject({ remaining: 500, wholeInSeconds: 10 })
    clock.mockReturnValue(now + 5_000)
    expect(standingOf(budget)).toMatchObject({ remaining: 550, wholeInSeconds: 5 })
  })

  test('a clock of Redis that was set back costs one minute at most, and no request its answer', async () => {
    const [first, second] = gateways(2) as [RateLimiter, RateLimiter]
    const [name, startedAt] = [newId('key'), performance.now()]
    const [seconds = 0] = (await redis.time()).map(Number)
    await redis.set(name, String((seconds + 3_600) * 1_000_000), 'PX', 7_200_000)
    const budget = first.budget(name, 60)
    expect(await first.take(budget)).toBe(false)
    expect(standingOf(budget)).toEqual({ remaining: 0, wholeInSeconds: 60, tokenInSeconds: 1 })
    // What is whole in a minute has a token each second.
    await expect.poll(() => take(second, second.budget(name, 60), 1)).toBe(1)
    expect(performance.now() - startedAt).toBeLessThan(5_000)
  })

  test('another tier counts at once, what was spent stays spent', async () => {
    const [limiter] = gateways(1) as [RateLimiter]
    const name = newId('key')
    await take(limiter, limiter.budget(name, 60), 30)
    const budget = limiter.budget(name, 600)
    expect(standingOf(budget).remaining).toBe(300)
    expect(await take(limiter, budget, 400)).toBeGreaterThanOrEqual(300)
  })

  test('a flushed Redis gives this gateway no second budget', async () => {
    const [limiter] = gateways(1) as [RateLimiter]
    const name = newId('key')
    const budget = limiter.budget(name, 60)
    expect(await take(limiter, budget, 60)).toBe(60)
    await redis.del(name)
    await redis.script('FLUSH')
    expect(await take(limiter, budget, 60)).toBe(0)
    expect(await take(limiter, limiter.budget(newId('key'), 60), 60)).toBe(60)
  })
})

describe('without Redis', () => {
  test('a gateway that never reached it limits by itself', async () => {
    const redis = connectRedis('redis://127.0.0.1:1', log)
    let alone = 0
    const limiter = createRateLimiter(budgetsIn(redis), log, () => alone++)
    expect(await take(limiter, limiter.budget(newId('key'), 60), 100)).toBe(60)
    expect([limiter.isAlone(), alone]).toEqual([true, 60])
    redis.disconnect()
  })

  test('a Redis that takes nobody in is told with its reason', async () => {
    const servers = await startPrivateServers(mkdtempSync(join(inject('runFolder'), 'redis-')), ['redis'])
    onTestFinished(servers.stop)
    const owner = await connect(servers.redisUrl)
    await owner.config('SET', 'requirepass', 'right')
    owner.disconnect()
    const warned = vi.spyOn(log, 'warn')
    onTestFinished(() => warned.mockRestore())
    const { host } = new URL(servers.redisUrl)
    const redis = connectRedis(`redis://:wrong@${host}`, log)
    onTestFinished(() => redis.disconnect())
    await expect.poll(() => redis.refusal?.message).toMatch(/^WRONGPASS/)
    const limiter = createRateLimiter(budgetsIn(redis), log)
    expect(await take(limiter, limiter.budget(newId('key'), 60), 2)).toBe(2)
    expect(warned).toHaveBeenCalledExactlyOnceWith(
      { err: expect.objectContaining({ message: expect.stringMatching(/^WRONGPASS/) }) },
      expect.stringMatching(/^redis does not answer/),
    )
  })

  test.skipIf(!isProgram('redis'))(
    'a frozen one costs 50 ms once, then nothing; limits hold on; when it wakes, no budget is lost',
    async () => {
      const servers = await startPrivateServers(mkdtempSync(join(inject('runFolder'), 'redis-')), ['redis'])
      const redis = await connect(servers.redisUrl)
      const limiter = createRateLimiter(budgetsIn(redis), log)
      const name = newId('key')
      const startedAt = performance.now()
      const budget = limiter.budget(name, 600)
      expect(await take(limiter, budget, 300)).toBe(300)

      const pid = servers.processes[0]?.pid()
      signal(pid, 'SIGSTOP')
      budget.inHand = 0
      const frozenAt = performance.now()
      expect(await limiter.take(budget)).toBe(true)
      expect(performance.now() - frozenAt).toBeGreaterThan(45)
      const told = Array.from({ length: 500 }, () => limiter.take(budget))
      expect(new Set(told)).toEqual(new Set([true, false]))
      const granted = told.filter(Boolean).length
      expect(granted).toBeGreaterThanOrEqual(299)
      expect(granted).toBeLessThanOrEqual(300 + (performance.now() - startedAt) / 100)

      signal(pid, 'SIGCONT')
      await expect.poll(() => take(limiter, limiter.budget(newId('key'), 60), 1).then(() => redis.exists(name))).toBe(1)
      const others = createRateLimiter(budgetsIn(redis), log)
      expect(await take(others, others.budget(name, 600), 600)).toBeGreaterThan(200)
      redis.disconnect()
      await servers.stop()
    },
  )

  test('while it is away it is pinged once in a second, however many requests come', async () => {
    const lease = () => Promise.reject(new Error('away'))
    const ping = vi.fn<() => Promise<unknown>>(lease)
    const limiter = createRateLimiter({ lease, ping }, log)
    await take(limiter, limiter.budget(newId('key'), 600), 2)
    const now = performance.now() + 1_500
    const clock = vi.spyOn(performance, 'now').mockReturnValue(now)
    onTestFinished(() => clock.mockRestore())
    for (let n = 0; n < 3; n++) expect(await take(limiter, limiter.budget(newId('key'), 600), 10)).toBe(10)
    expect(ping).toHaveBeenCalledOnce()
  })

  test('one that refuses to write costs a line when it begins and one when it ends, and no request its answer', async () => {
    const lines: string[] = []
    const spies = (['warn', 'info'] as const).map((level) =>
      vi
        .spyOn(log, level)
        .mockImplementation((...words: unknown[]) => void lines.push(`${level}: ${String(words.at(-1))}`)),
    )
    let isReadOnly = true
    let leases = 0
    const lease = async () => {
      leases++
      if (isReadOnly) throw new Error("READONLY You can't write against a read only replica.")
      return { tokens: 1, wholeInMs: 1_000 }
    }
    const limiter = createRateLimiter({ lease, ping: () => Promise.resolve() }, log)
    const now = performance.now.bind(performance)
    let passedMs = 0
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => now() + passedMs)
    for (; passedMs < 10_000; passedMs += 500) {
      expect(await take(limiter, limiter.budget(newId('key'), 60), 2)).toBe(2)
      expect(limiter.isAlone()).toBe(true)
    }
    const began = 'warn: redis does not answer: this process enforces rate limits on its own'
    expect(lines).toEqual([began])
    // It is asked once in a second.
    expect(leases).toBeLessThanOrEqual(8)
    isReadOnly = false
    for (; passedMs < 30_000; passedMs += 500) await take(limiter, limiter.budget(newId('key'), 60), 2)
    expect(lines).toEqual([began, 'info: redis answers again: rate limits are shared with the other gateways'])
    expect(limiter.isAlone()).toBe(false)
    for (const spy of [...spies, clock]) spy.mockRestore()
  })
})
