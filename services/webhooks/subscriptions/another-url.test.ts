import { untilSomebodyWaits } from '@app/test/lock-waits.ts'
import { until } from '@app/test/until.ts'
import { beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { renewLane } from '../attempts/wake-lane.ts'
import type { TestWebhooks } from '../testing/app.ts'
import { answer, type Receiver, type Respond, startReceiver } from '../testing/receiver.ts'
import { oneSubscription } from '../testing/one-subscription.ts'
import { endWaits, sweepWaits } from './end-waits.ts'

let webhooks: TestWebhooks
let receiver: Receiver
let id: string

const one = oneSubscription()
const { patch, enable, gotIds } = one
beforeAll(() => void ({ webhooks, receiver } = one))
beforeEach(() => void ({ id } = one))

test('another URL is tried at once, whatever the old one waited for', async () => {
  await patch({ url: 'http://127.0.0.1:9/' })
  const [eventId] = await webhooks.emit({})
  await until(async () => expect(await webhooks.deliveries({ status: 'failed' })).toHaveLength(1))
  await webhooks.sql`update lanes set failures = 7, due_at = now() + interval '1 hour', paced_until = now() + interval '1 hour'`
  await webhooks.sql`update due_deliveries set due_at = now() + interval '1 hour'`
  await patch({ url: receiver.url })
  await until(() => expect(gotIds()).toEqual([eventId]))
})

describe('another URL that comes with', () => {
  const isTriedAtOnce = async (...moves: (() => Promise<unknown>)[]) => {
    await patch({ url: 'http://127.0.0.1:9/' })
    const [eventId] = await webhooks.emit({})
    await until(async () => expect(await webhooks.deliveries({ status: 'failed' })).toHaveLength(1))
    await webhooks.sql`update due_deliveries set due_at = now() + interval '1 hour'`
    await webhooks.sql`
      update subscriptions set status = 'paused', disabled_reason = 'consecutive_failures', paused_at = now()
    `
    for (const move of moves) await move()
    await until(() => expect(gotIds()).toEqual([eventId]))
    expect(await webhooks.subscription(id)).toMatchObject({ status: 'active', url: receiver.url })
  }

  test('a resumption is tried at once', () => isTriedAtOnce(() => patch({ url: receiver.url, status: 'active' })))
  test('a pause is tried when that is over', () =>
    isTriedAtOnce(
      () => patch({ url: receiver.url, status: 'paused' }),
      () => patch({ status: 'active' }),
    ))
  test('an enabling is tried at once', () => isTriedAtOnce(() => enable({ url: receiver.url })))
})

test('with another URL all that waits is due, the first portion at once, the rest by portions, and no retry of the new one, nor of another subscription', async () => {
  const { sql, organizationId } = webhooks
  await patch({ status: 'paused' })
  await sql`
    insert into due_deliveries (id, organization_id, subscription_id, event_at, event_id, due_at)
    select 'wbd_' || lpad(n::text, 26, '0'), ${organizationId}, ${id}, now(), 'evt', now() + ceil(n / 7.0) * interval '1 minute'
    from generate_series(1, 2500) n
    union all select 'wbd_other', ${organizationId}, 'wbs_other', now(), 'evt', now() + interval '3 hours'
  `
  const waiting = async () => {
    const [row] = await sql<{ count: number; latest: number }[]>`
      select count(*)::int as count, ceil(extract(epoch from max(due_at) - now()) / 60)::int as latest
      from due_deliveries where due_at > now() and subscription_id = ${id}
    `
    return row
  }
  await patch({ url: `${receiver.url}/other` })
  expect(await waiting()).toEqual({ count: 1_500, latest: 215 })
  await sql`
    insert into lanes (id, grp, arrivals) values (${id}, ${organizationId}, 0) on conflict (id) do update set arrivals = 0
  `
  expect(await sweepWaits(sql)).toBe(1)
  expect(await waiting()).toEqual({ count: 500, latest: 72 })
  expect(await sql`select arrivals > 0 as is_woken from lanes where id = ${id}`).toEqual([{ isWoken: true }])
  // What failed at the new URL meanwhile.
  await sql`update due_deliveries set due_at = now() + interval '24 hours' where id = 'wbd_' || lpad('2500', 26, '0')`
  while ((await sweepWaits(sql)) > 0);
  expect(await waiting()).toMatchObject({ count: 1 })
  expect(await sql`select from due_deliveries where id = 'wbd_other' and due_at > now()`).toHaveLength(1)
  await webhooks.clear()
})

test('another URL begins anew: its first failure pauses nothing, whatever the old one has failed', async () => {
  await webhooks.sql`
    insert into lanes (id, grp, failures, failing_since)
    values (${id}, ${webhooks.organizationId}, 19, now() - interval '1 hour')
  `
  receiver.respondWith(answer(500))
  expect(await patch({ url: `${receiver.url}/other` })).toMatchObject({ consecutive_failures: 0 })
  expect(await webhooks.sql`select paused_at from subscriptions`).toEqual([{ pausedAt: null }])
  await webhooks.emit({})
  await until(async () => expect(await webhooks.deliveries({ status: 'failed' })).toHaveLength(1))
  expect(await webhooks.subscription(id)).toMatchObject({ status: 'active', consecutive_failures: 1 })
})

test('another URL of one that has paused itself is probed at once, and its first success makes it active', async () => {
  await webhooks.sql`update subscriptions set status = 'paused', disabled_reason = 'consecutive_failures', paused_at = now()`
  await webhooks.sql`
    insert into lanes (id, grp, failures, paced_until)
    values (${id}, ${webhooks.organizationId}, 20, now() + interval '1 hour')
  `
  const [eventId] = await webhooks.emit({})
  await until(async () => expect(await webhooks.deliveries({ status: 'pending' })).toHaveLength(1))
  expect(await patch({ url: `${receiver.url}/other` })).toMatchObject({ status: 'paused', consecutive_failures: 20 })
  await until(() => expect(gotIds()).toEqual([eventId]))
  await until(async () =>
    expect(await webhooks.subscription(id)).toMatchObject({ status: 'active', consecutive_failures: 0 }),
  )
})

test('another URL of one that has paused itself is probed, though the old one answers well at last', async () => {
  const old = await startReceiver()
  onTestFinished(() => old.close())
  const out: (() => void)[] = []
  old.respondWith((response) => void out.push(() => response.end('ok')))
  await patch({ url: old.url })
  await until(async () =>
    expect(await webhooks.sql`select from lanes where due_at is null and held_until = '-infinity'`).toHaveLength(1),
  )
  await webhooks.sql`update lanes set failures = 20`
  await webhooks.sql`update subscriptions set status = 'paused', disabled_reason = 'consecutive_failures', paused_at = now()`
  await webhooks.emit({})
  await until(() => expect(out).toHaveLength(1))
  await patch({ url: receiver.url })
  out[0]?.()
  await until(async () => expect(await webhooks.deliveries({ status: 'succeeded' })).toHaveLength(1))
  const [eventId] = await webhooks.emit({})
  await until(() => expect(gotIds()).toEqual([eventId]))
  await until(async () =>
    expect(await webhooks.subscription(id)).toMatchObject({ status: 'active', consecutive_failures: 0 }),
  )
})

test('the URL that it has, with another change, does not cut short what the endpoint waits for', async () => {
  receiver.respondWith(answer(429, { 'retry-after': '600' }))
  await webhooks.emit({})
  const rests = async () => {
    const [lane] = await webhooks.sql`
      select held_until = '-infinity' as is_free, due_at > now() + interval '5 minutes' as waits,
        paced_until > now() + interval '5 minutes' as is_paced from lanes
    `
    expect(lane).toEqual({ isFree: true, waits: true, isPaced: true })
  }
  await until(rests)
  expect(await patch({ url: receiver.url, description: 'second' })).toMatchObject({ description: 'second' })
  await rests()
})

describe('what the old URL answers when there is another one', () => {
  test('that it has it: what is behind that in a customer’s line goes to the other one at once', async () => {
    const other = await startReceiver()
    onTestFinished(() => other.close())
    const out: (() => void)[] = []
    receiver.respondWith((...call) => void out.push(() => answer(200)(...call)))
    await webhooks.emit({ line: 'ctm_1' })
    await until(() => expect(out).toHaveLength(1))
    const [behind] = await webhooks.emit({ line: 'ctm_1' })
    await until(async () => expect(await webhooks.deliveries()).toHaveLength(2))
    await patch({ url: other.url })
    // Its next holder has found the first one in a call, and gave it back until that must be over.
    await until(async () => {
      const [lane] = await webhooks.sql`
        select held_until = '-infinity' as is_free, due_at > now() + interval '5 s' as waits from lanes
      `
      expect(lane).toEqual({ isFree: true, waits: true })
    })
    out[0]?.()
    await until(() => expect(other.got.map(({ headers }) => headers['x-svc-event-id'])).toEqual([behind]), 5_000)
  })

  const answers: [string, Respond][] = [
    ['that it is gone', answer(410)],
    ['that it wants to rest for a day', answer(429, { 'retry-after': '86400' })],
    ['that it failed', answer(500)],
  ]
  test.each(answers)('%s: the other one is tried at once, and nothing is held against it', async (_, late) => {
    const [old, other] = await Promise.all([startReceiver(), startReceiver()])
    const out: (() => void)[] = []
    old.respondWith((...call) => void out.push(() => late(...call)))
    await patch({ url: old.url })
    const sent = await webhooks.emit({}, {})
    await until(() => expect(out).toHaveLength(2))
    await patch({ url: other.url })
    const [fresh = ''] = await webhooks.emit({})
    await until(() => expect(other.got.map(({ headers }) => headers['x-svc-event-id'])).toEqual([fresh]))
    for (const end of out) end()
    await until(() =>
      expect(new Set(other.got.map(({ headers }) => headers['x-svc-event-id']))).toEqual(new Set([fresh, ...sent])),
    )
    await until(async () => expect(await webhooks.deliveries({ status: 'succeeded' })).toHaveLength(3))
    expect(await webhooks.subscription(id)).toMatchObject({ status: 'active', consecutive_failures: 0 })
    await old.close()
    await other.close()
  })

  test.each(answers)('%s, just while it is changed: the other one is tried at once all the same', async (_, late) => {
    const [old, other] = await Promise.all([startReceiver(), startReceiver()])
    onTestFinished(() => Promise.all([old.close(), other.close()]).then(() => {}))
    const out: (() => void)[] = []
    old.respondWith((...call) => void out.push(() => late(...call)))
    await patch({ url: old.url })
    const [eventId] = await webhooks.emit({})
    await until(() => expect(out).toHaveLength(1))
    await webhooks.sql.begin(async (tx) => {
      await tx`update subscriptions set url = ${other.url} where id = ${id}`
      await renewLane(tx, id)
      await endWaits(tx, id)
      out[0]?.()
      await untilSomebodyWaits(tx)
    })
    await until(() => expect(other.got.map(({ headers }) => headers['x-svc-event-id'])).toEqual([eventId]), 3_000)
    expect(await webhooks.subscription(id)).toMatchObject({ status: 'active', consecutive_failures: 0 })
  })

  test('that it wants to rest, with another call still out: the other URL does not rest for it', async () => {
    const [old, other] = await Promise.all([startReceiver(), startReceiver()])
    const out: (() => void)[] = []
    old.respondWith((response) => void out.push(() => response.writeHead(429, { 'retry-after': '86400' }).end()))
    await patch({ url: old.url })
    await webhooks.emit({}, {})
    await until(() => expect(out).toHaveLength(2))
    out[0]?.()
    await until(async () => expect(await webhooks.deliveries({ status: 'failed' })).toHaveLength(1))
    await patch({ url: other.url })
    const [fresh] = await webhooks.emit({})
    await until(() => expect(other.got.map(({ headers }) => headers['x-svc-event-id'])).toContain(fresh))
    out[1]?.()
    const [later] = await webhooks.emit({})
    await until(() => expect(other.got.map(({ headers }) => headers['x-svc-event-id'])).toContain(later))
    await old.close()
    await other.close()
  })
})
