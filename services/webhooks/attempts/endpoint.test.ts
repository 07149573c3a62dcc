import type { ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { updateWebhookSubscription } from '../subscriptions/update-webhook-subscription.ts'
import { until } from '@app/test/until.ts'
import { beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { lastByOldMs } from './as-read.ts'
import type { TestWebhooks } from '../testing/app.ts'
import { webhooksAndReceivers } from '../testing/webhooks-and-receiver.ts'
import { answer, type Receiver, type Respond, startReceiver } from '../testing/receiver.ts'

const both = webhooksAndReceivers()
const { theDelivery } = both
let webhooks: TestWebhooks
let receiver: Receiver
beforeEach(() => void ({ webhooks, receiver } = both))

test('the fifth failure in a row opens the breaker; then one probe at a time, the oldest and the least tried in turn', async () => {
  const { id } = await webhooks.subscribe({ url: receiver.url })
  receiver.respondWith(answer(500))
  for (let n = 0; n < 8; n++) await webhooks.emit({})
  await until(async () => expect(await webhooks.deliveries()).toHaveLength(8))
  await until(async () => {
    const { consecutive_failures: failures } = await webhooks.subscription(id)
    expect(failures).toBeGreaterThanOrEqual(5)
  })
  await until(async () => {
    const [lane] =
      await webhooks.sql`select held_until = '-infinity' and due_at > now() + interval '20 s' as rests from lanes`
    expect(lane).toEqual({ rests: true })
  })
  // At the same moment, when they are recorded together.
  expect(await webhooks.sql`select probed_since >= failing_since as is_probed from lanes`).toEqual([{ isProbed: true }])
  const before = receiver.got.length
  const tries = () => webhooks.sql`select id, tries, due_at from due_deliveries order by id`
  const schedule = await tries()
  for (let probe = 1; probe <= 2; probe++) {
    await webhooks.sql`update lanes set due_at = now()`
    webhooks.attempts.wake()
    await until(async () => {
      const [lane] =
        await webhooks.sql`select held_until = '-infinity' and due_at > now() + interval '20 s' as rests from lanes`
      expect([receiver.got.length, lane]).toEqual([before + probe, { rests: true }])
    })
  }
  expect(await tries()).toEqual(schedule)
  const [one, other] = receiver.got.slice(before).map(({ headers }) => headers['x-svc-event-id'])
  expect(one).not.toBe(other)
  receiver.respondWith(answer(200))
  await webhooks.hurry()
  await until(async () => expect(await webhooks.deliveries({ status: 'succeeded' })).toHaveLength(8))
  expect(await webhooks.subscription(id)).toMatchObject({ consecutive_failures: 0 })
})

test.each([
  ['rests: its probes are 2 minutes apart by now', { failures: 7, status: 'active', sinceS: 90, waitS: 120 }],
  ['is paused: its probes are 20 minutes apart', { failures: 25, status: 'paused', sinceS: 900, waitS: 1_200 }],
])('an endpoint that %s, whichever process makes them', async (_, { failures, status, sinceS, waitS }) => {
  const { id } = await webhooks.subscribe({ url: receiver.url })
  receiver.respondWith(answer(500))
  const since = webhooks.sql`now() - ${sinceS} * interval '1 s'`
  await webhooks.sql`
    insert into lanes (id, grp, failures, failing_since, probed_since)
    values (${id}, ${webhooks.organizationId}, ${failures}, now() - interval '2 hours', ${since})
  `
  if (status === 'paused')
    await webhooks.sql`
      update subscriptions set status = 'paused', disabled_reason = 'consecutive_failures', paused_at = ${since}
    `
  await webhooks.emit({})
  await until(async () => {
    const [lane] = await webhooks.sql`
      select failures, abs(extract(epoch from due_at - now()) / ${waitS} - 1) < 0.25 as is_so_long from lanes
      where held_until = '-infinity'
    `
    expect(lane).toEqual({ failures: failures + 1, isSoLong: true })
  })
})

test('failures in a row are told, and kept for whoever holds the lane next, while other calls are still out', async () => {
  const { id } = await webhooks.subscribe({ url: receiver.url })
  const held: ServerResponse[] = []
  receiver.respondWith((response) => void held.push(response))
  await webhooks.emit({}, {}, {})
  await until(() => expect(held).toHaveLength(3))
  for (const [n, status] of [500, 200].entries()) {
    held[n]?.writeHead(status).end()
    await until(async () => {
      expect(await webhooks.subscription(id)).toMatchObject({ consecutive_failures: status === 500 ? 1 : 0 })
      const [row] = await webhooks.sql`
        select held_until > now() as is_held, (select count(*)::int from attempts) as ended from lanes
      `
      expect(row).toEqual({ isHeld: true, ended: n + 1 })
    })
  }
  held[2]?.end()
  await until(async () => expect(await webhooks.deliveries({ status: 'succeeded' })).toHaveLength(2))
})

/** That many deliveries are there before the first goes out. */
async function emitTogether(count: number) {
  await webhooks.sql`update subscriptions set status = 'paused'`
  await webhooks.emit(...Array.from({ length: count }, () => ({})))
  await until(async () => expect(await webhooks.deliveries({ status: 'pending' })).toHaveLength(count))
  await webhooks.sql`update subscriptions set status = 'active'`
}

test('ten at a time to one endpoint, and no more', async () => {
  await webhooks.subscribe({ url: receiver.url })
  const held: (() => void)[] = []
  receiver.respondWith((response) => void held.push(() => response.end()))
  // Together: an endpoint that is silent for a second gets no more.
  await emitTogether(25)
  await webhooks.hurry()
  await until(() => expect(held).toHaveLength(10))
  held.splice(0, 1).forEach((release) => release())
  await until(() => expect(held).toHaveLength(10))
  receiver.respondWith(answer(200))
  held.forEach((release) => release())
  await until(async () => expect(await webhooks.deliveries({ status: 'succeeded' })).toHaveLength(25))
})

/** How many attempts are begun, and how many are counted at deliveries of which none is. */
async function attemptsInRows() {
  const [row] = await webhooks.sql<{ begun: number; before: number }[]>`
    select count(begun_at)::int as begun, coalesce(sum(attempts) filter (where begun_at is null), 0)::int as before
    from due_deliveries
  `
  return row ?? { begun: 0, before: 0 }
}

test('a call that has ended keeps nothing back: ten at a time go out when it began a while ago', async () => {
  await webhooks.subscribe({ url: receiver.url })
  await webhooks.emit({})
  await until(async () => expect(await webhooks.deliveries({ status: 'succeeded' })).toHaveLength(1))
  const now = performance.now.bind(performance)
  const later = vi.spyOn(performance, 'now').mockImplementation(() => now() + 2_000)
  onTestFinished(() => later.mockRestore())
  const held: ServerResponse[] = []
  receiver.respondWith((response) => void held.push(response))
  await emitTogether(10)
  await webhooks.hurry()
  await until(() => expect(held).toHaveLength(10))
  held.forEach((response) => response.end())
  await until(async () => expect(await webhooks.deliveries({ status: 'succeeded' })).toHaveLength(11))
})

test('an endpoint that is well again gets twice as many at a time after each success, also when that could not be recorded at once', async () => {
  await webhooks.subscribe({ url: receiver.url })
  const held: ServerResponse[] = []
  receiver.respondWith((response) => void held.push(response))
  await emitTogether(15)
  await webhooks.sql`update lanes set failures = 1, failing_since = now()`
  await webhooks.hurry()
  const isOut = async (count: number, ended: number) => {
    await until(async () => expect(await webhooks.deliveries({ status: 'succeeded' })).toHaveLength(ended))
    expect(await attemptsInRows()).toEqual({ begun: count, before: 0 })
    await until(() => expect(held).toHaveLength(ended + count))
  }
  await until(() => expect(held).toHaveLength(1))
  held[0]?.end()
  await isOut(2, 1)
  const failing = vi.spyOn(webhooks.payloads, 'find').mockRejectedValueOnce(new Error('not now'))
  onTestFinished(() => failing.mockRestore())
  held[1]?.end()
  await isOut(4, 2)
  receiver.respondWith(answer(200))
  held.forEach((response) => response.end())
  await until(async () => expect(await webhooks.deliveries({ status: 'succeeded' })).toHaveLength(15))
})

/**
 * An endpoint that has just answered at once, and answers otherwise from now on; 60 events are on their way. Answers how many
 * it has had. On a busy machine the first answer takes longer than that of an endpoint that is quick.
 */
async function quickEndpoint(next: Respond) {
  await webhooks.subscribe({ url: receiver.url })
  await until(async () => {
    const had = receiver.got.length + 1
    await webhooks.emit({})
    const last = await until(async () => {
      const [attempt] = await webhooks.sql<{ durationMs: number; count: number }[]>`
        select duration_ms, count(*) over ()::int as count from attempts order by started_at desc limit 1
      `
      expect(attempt?.count).toBe(had)
      return attempt
    })
    expect(last?.durationMs).toBeLessThan(50)
  })
  const had = receiver.got.length
  receiver.respondWith(next)
  await webhooks.emit(...Array.from({ length: 60 }, () => ({})))
  return had
}

test('a quick endpoint has attempts begun ahead, which go back when it is quick no more; ten at a time go out all the same', async () => {
  const held: ServerResponse[] = []
  const finding = vi.spyOn(webhooks.payloads, 'find')
  onTestFinished(() => finding.mockRestore())
  const had = await quickEndpoint((response) => void held.push(response))
  const begun = () => finding.mock.calls.reduce((sum, [, keys]) => sum + keys.length, 0) - had
  await until(() => expect(begun()).toBeGreaterThan(10))
  await until(async () => expect(await attemptsInRows()).toEqual({ begun: 10, before: 0 }))
  expect(held).toHaveLength(10)
  receiver.respondWith(answer(200))
  held.forEach((response) => response.end())
  await until(async () => expect(await webhooks.deliveries({ status: 'succeeded' })).toHaveLength(had + 60))
  const counts = await webhooks.sql`select delivery_id from attempts group by 1 having count(*) > 1 or max(number) > 1`
  expect([receiver.got.length, counts.length]).toEqual([had + 60, 0])
})

test('what was begun ahead goes to the URL that the subscription gets meanwhile, at once', async () => {
  const held: ServerResponse[] = []
  const had = await quickEndpoint((response) => void held.push(response))
  await until(() => expect(held).toHaveLength(10))
  const other = await startReceiver()
  const [subscription] = await webhooks.sql<{ id: string }[]>`select id from subscriptions`
  const change = { params: { id: subscription?.id ?? '' }, body: { url: other.url } }
  await webhooks.ask(updateWebhookSubscription, change)
  await until(() => expect(other.got).toHaveLength(50), 10_000)
  held.forEach((response) => response.end())
  // What is recorded after its end would count in the next test.
  await until(async () => expect(await webhooks.deliveries({ status: 'succeeded' })).toHaveLength(had + 60))
  await other.close()
})

test('attempts that go back since their subscription has changed leave their places to the next ones', async () => {
  const { id } = await webhooks.subscribe({ url: receiver.url })
  const other = await startReceiver()
  const { find } = webhooks.payloads
  const [begun, changed] = [Promise.withResolvers<number>(), Promise.withResolvers<void>()]
  const slowly = vi.spyOn(webhooks.payloads, 'find').mockImplementation(async (tx, keys) => {
    if (keys.length > 0) begun.resolve(keys.length)
    await changed.promise
    return find(tx, keys)
  })
  onTestFinished(() => {
    changed.resolve()
    slowly.mockRestore()
  })
  // All that may be out at a time are begun together.
  await emitTogether(10)
  await webhooks.hurry()
  expect(await begun.promise).toBe(10)
  await webhooks.sql`update subscriptions set url = ${other.url} where id = ${id}`
  await sleep(lastByOldMs)
  changed.resolve()
  await until(() => expect(other.got).toHaveLength(10))
  expect(receiver.got).toEqual([])
  await until(async () => expect(await webhooks.deliveries({ status: 'succeeded' })).toHaveLength(10))
  await other.close()
})

test.each([500, 429])(
  'the retry of a call that was out while its subscription was resumed comes in its time: %i',
  async (status) => {
    const { id } = await webhooks.subscribe({ url: receiver.url })
    const held: ServerResponse[] = []
    receiver.respondWith((response) => void held.push(response))
    await webhooks.emit({})
    await until(() => expect(held).toHaveLength(1))
    for (const change of ['paused', 'active'] as const)
      await webhooks.ask(updateWebhookSubscription, { params: { id }, body: { status: change } })
    const lane = async () => {
      const [row] = await webhooks.sql<{ isFree: boolean; waitS: number }[]>`
      select held_until = '-infinity' as is_free, extract(epoch from due_at - now())::float8 as wait_s from lanes
    `
      return row
    }
    await until(async () => expect(await lane()).toMatchObject({ isFree: true, waitS: expect.closeTo(20, -1) }))
    held[0]?.writeHead(status, { 'retry-after': '1' }).end()
    await theDelivery({ status: 'failed' })
    await until(async () => {
      const row = await lane()
      expect(row?.isFree).toBe(true)
      expect(row?.waitS).toBeLessThan(7.5)
    }, 5_000)
  },
)

test('what was begun ahead does not go out behind a failure, and is not counted', async () => {
  const had = await quickEndpoint(answer(500))
  await until(async () => {
    const [lane] = await webhooks.sql`select held_until = '-infinity' as is_free, failures >= 5 as is_open from lanes`
    expect(lane).toEqual({ isFree: true, isOpen: true })
  })
  const failed = receiver.got.length - had
  expect(failed).toBeLessThan(25)
  expect(await attemptsInRows()).toEqual({ begun: 0, before: failed })
})

test('a call that hangs holds up neither the endpoint’s next events nor another endpoint', async () => {
  await webhooks.subscribe({ url: receiver.url })
  const other = await startReceiver()
  await webhooks.subscribe({ url: other.url })
  receiver.respondWith((response, _received, n) => void (n > 1 && response.end()))
  await webhooks.emit({})
  await until(() => expect(receiver.got).toHaveLength(1))
  await webhooks.emit({})
  await until(() => expect([receiver.got.length, other.got.length]).toEqual([2, 2]))
  await other.close()
})
