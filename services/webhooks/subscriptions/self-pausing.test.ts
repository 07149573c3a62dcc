import { until } from '@app/test/until.ts'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type TestWebhooks, testWebhooks } from '../testing/app.ts'
import { answer, type Receiver, startReceiver } from '../testing/receiver.ts'
import { explainSubscription } from '../explain/explain-subscription.ts'
import { disableWebhookSubscription, sweepFailing } from './disable-webhook-subscription.ts'
import { enableWebhookSubscription } from './enable-webhook-subscription.ts'
import { updateWebhookSubscription } from './update-webhook-subscription.ts'

let webhooks: TestWebhooks
let receiver: Receiver
let witness: Receiver
let id: string
let witnessId: string

const operational = [
  'webhook.subscription.failing',
  'webhook.subscription.paused',
  'webhook.subscription.resumed',
  'webhook.subscription.disabled',
] as const

beforeAll(async () => {
  webhooks = await testWebhooks()
})
afterAll(async () => {
  await Promise.all([receiver.close(), witness.close()])
  await webhooks.close()
})
beforeEach(async () => {
  await Promise.all([receiver?.close(), witness?.close()])
  receiver = await startReceiver()
  witness = await startReceiver()
  await webhooks.clear()
  id = (await webhooks.subscribe({ url: receiver.url, events: ['message.received', ...operational] })).id
  witnessId = (await webhooks.subscribe({ url: witness.url, events: [...operational] })).id
})

const change = (body: Parameters<typeof updateWebhookSubscription>[1]['body']) =>
  webhooks.ask(updateWebhookSubscription, { params: { id }, body })
const enable = () => webhooks.ask(enableWebhookSubscription, { params: { id }, body: {} })
const disable = () => webhooks.ask(disableWebhookSubscription, { body: { subscription_id: id } })

const told = (by = witness) =>
  by.got
    .map(({ body }) => JSON.parse(body.toString()))
    .map(({ type, data }) => [type.split('.').at(-1), data.subscription.id, data.reason])

const rests = async () => {
  const [lane] = await webhooks.sql<{ waitS: number | null; isHeld: boolean }[]>`
    select extract(epoch from due_at - now())::float8 as wait_s, held_until > now() as is_held from lanes where id = ${id}
  `
  expect(lane?.isHeld).toBe(false)
  expect(lane?.waitS).toBeGreaterThan(20)
  return lane?.waitS ?? 0
}

/** A delivery that fails, to a lane that failed before, since so many minutes. */
async function failOnceMore(failures: number, minutes: number) {
  receiver.respondWith(answer(500))
  await webhooks.emit({})
  await until(async () => expect(await webhooks.deliveries({ status: 'failed' })).toHaveLength(1))
  await webhooks.sql`
    update lanes set failures = ${failures}, failing_since = now() - ${minutes} * interval '1 minute', probed_since = now()
    where id = ${id}
  `
  await webhooks.hurry()
  await until(() => expect(receiver.got).toHaveLength(2))
}

const probe = async () => {
  const before = receiver.got.length
  await webhooks.sql`update lanes set due_at = now() where id = ${id}`
  webhooks.attempts.wake()
  await until(() => expect(receiver.got.length).toBeGreaterThan(before))
}

test('the twentieth failure in a row, over ten minutes, pauses it, and the others are told', async () => {
  await failOnceMore(19, 11)
  await until(async () => {
    expect(await webhooks.subscription(id)).toMatchObject({
      status: 'paused',
      disabled_reason: 'consecutive_failures',
      consecutive_failures: 20,
    })
  })
  const waitS = await until(rests)
  expect(waitS).toBeGreaterThan(230)
  expect(waitS).toBeLessThan(361)
  await until(() => expect(told()).toEqual([['paused', id, 'consecutive_failures']]))
  const { data } = JSON.parse(String(witness.got[0]?.body))
  const { secrets: _, ...shown } = await webhooks.subscription(id)
  expect(data.subscription).toEqual(shown)
  const own = await webhooks.deliveries({ subscription_id: id })
  expect(own.map(({ event_type }) => event_type)).toEqual(['message.received'])
})

test('twenty failures within ten minutes do not', async () => {
  await failOnceMore(19, 9)
  await until(rests)
  expect(await webhooks.subscription(id)).toMatchObject({ status: 'active', consecutive_failures: 20 })
})

test('failures count from the first of the row: a success between begins a new one', async () => {
  await failOnceMore(0, 30)
  await until(async () => {
    expect(
      await webhooks.sql`select failing_since > now() - interval '1 minute' as is_new from lanes where id = ${id}`,
    ).toEqual([{ isNew: true }])
  })
})

test('paused by itself it is probed after 5, 10, 20 minutes and more, and one success heals it', async () => {
  await failOnceMore(19, 11)
  const waits = [await until(rests)]
  for (const minutes of [5, 15, 35, 75, 135]) {
    await webhooks.sql`update subscriptions set paused_at = now() - ${minutes} * interval '1 minute' where id = ${id}`
    await probe()
    waits.push(await until(rests))
  }
  for (const [n, minutes] of [5, 10, 20, 40, 60, 60].entries()) {
    expect(Math.abs((waits[n] ?? 0) / 60 - minutes)).toBeLessThanOrEqual(minutes * 0.2)
  }
  // No probe begins its pause anew: after five days of it, it is disabled.
  const kept =
    await webhooks.sql`select paused_at < now() - interval '134 minutes' as is_kept from subscriptions where id = ${id}`
  expect(kept).toEqual([{ isKept: true }])
  const held = await webhooks.emit(...Array.from({ length: 20 }, () => ({})))
  await until(async () => expect(await webhooks.deliveries({ status: 'pending' })).toHaveLength(20))
  expect(receiver.got).toHaveLength(7)
  receiver.respondWith(answer(200))
  await probe()
  await until(async () => {
    expect(await webhooks.subscription(id)).toMatchObject({
      status: 'active',
      disabled_reason: null,
      consecutive_failures: 0,
    })
  })
  await until(() => expect(told().at(-1)).toEqual(['resumed', id, 'recovered']))
  const gotIds = () => receiver.got.map(({ headers }) => headers['x-svc-event-id'])
  await until(() => expect(gotIds()).toEqual(expect.arrayContaining(held)))
})

/** As it does that has failed for long: paused by itself, with nothing to do. */
async function fallAsleep() {
  await webhooks.sql`
    update subscriptions set status = 'paused', disabled_reason = 'consecutive_failures', paused_at = now() where id = ${id}
  `
  await webhooks.sql`insert into lanes (id, grp, failures) values (${id}, ${webhooks.organizationId}, 25)`
}

/** Asleep, with a probe out; answers what lets it through. */
async function whileProbed() {
  const ends: (() => void)[] = []
  receiver.respondWith((...call) => void ends.push(() => answer(200)(...call)))
  await fallAsleep()
  await webhooks.emit({})
  await until(() => expect(ends).toHaveLength(1))
  return () => ends[0]?.()
}

test('an event that comes to a lane that sleeps, paused by itself, is its next probe', async () => {
  await fallAsleep()
  const [eventId] = await webhooks.emit({})
  await until(async () => expect(await webhooks.subscription(id)).toMatchObject({ status: 'active' }))
  expect(receiver.got.map(({ headers }) => headers['x-svc-event-id'])).toContain(eventId)
})

test('what another instance gets through at the URL that it had before does not heal it', async () => {
  const endProbe = await whileProbed()
  // As an instance does that changes the URL and claims the lane, unheard by the one whose probe is still out.
  await webhooks.sql.begin(async (tx) => {
    await tx`update subscriptions set url = 'http://127.0.0.1:9/' where id = ${id}`
    await tx`update lanes set held_until = now() + interval '1 hour', arrivals = arrivals + 1 where id = ${id}`
  })
  endProbe()
  await until(async () =>
    expect(await webhooks.deliveries({ status: 'succeeded', subscription_id: id })).toHaveLength(1),
  )
  expect(await webhooks.subscription(id)).toMatchObject({
    status: 'paused',
    disabled_reason: 'consecutive_failures',
    consecutive_failures: 25,
  })
})

test('what heals it heals no other one, though that has the same URL', async () => {
  const { id: other } = await webhooks.subscribe({ url: receiver.url, events: ['contact.created'] })
  await webhooks.sql`
    update subscriptions set status = 'paused', disabled_reason = 'consecutive_failures', paused_at = now()
    where id in (${id}, ${other})
  `
  await webhooks.sql`insert into lanes (id, grp, failures) values (${id}, ${webhooks.organizationId}, 25)`
  await webhooks.emit({})
  await until(async () => expect(await webhooks.subscription(id)).toMatchObject({ status: 'active' }))
  expect(await webhooks.subscription(other)).toMatchObject({
    status: 'paused',
    disabled_reason: 'consecutive_failures',
  })
})

test('one that its owner has paused since its probe went out stays paused, though that gets through', async () => {
  const endProbe = await whileProbed()
  await change({ status: 'paused' })
  endProbe()
  await until(async () =>
    expect(await webhooks.deliveries({ status: 'succeeded', subscription_id: id })).toHaveLength(1),
  )
  expect(await webhooks.subscription(id)).toMatchObject({ status: 'paused', disabled_reason: null })
  expect(told()).toEqual([])
})

test('a failure of one whose lane another instance has by now does not pause it', async () => {
  const ends: (() => void)[] = []
  receiver.respondWith((...call) => void ends.push(() => answer(500)(...call)))
  await webhooks.sql`
    insert into lanes (id, grp, failures, failing_since)
    values (${id}, ${webhooks.organizationId}, 25, now() - interval '1 hour')
  `
  await webhooks.emit({})
  await until(() => expect(ends).toHaveLength(1))
  await webhooks.sql`update lanes set held_until = now() + interval '1 hour', arrivals = arrivals + 1 where id = ${id}`
  ends[0]?.()
  await until(async () => expect(await webhooks.deliveries({ status: 'failed', subscription_id: id })).toHaveLength(1))
  expect(await webhooks.subscription(id)).toMatchObject({ status: 'active', disabled_reason: null })
})

test('five days without a success disable it, and what it holds is dead', async () => {
  await failOnceMore(19, 11)
  await until(async () => expect(await webhooks.subscription(id)).toMatchObject({ status: 'paused' }))
  expect(await sweepFailing(webhooks.sql)).toBe(0)
  await webhooks.sql`update subscriptions set paused_at = now() - interval '121 hours' where id = ${id}`
  expect(await sweepFailing(webhooks.sql)).toBe(1)
  expect(await webhooks.subscription(id)).toMatchObject({ status: 'disabled', disabled_reason: 'failing_too_long' })
  await until(async () => {
    expect(await webhooks.deliveries({ status: 'dead', subscription_id: id })).toMatchObject([
      { error_code: 'subscription_disabled' },
    ])
  })
  await until(() => expect(told().at(-1)).toEqual(['disabled', id, 'failing_too_long']))
})

test('the five days of another URL begin with it, those of the same one go on', async () => {
  await webhooks.sql`
    update subscriptions set status = 'paused', disabled_reason = 'consecutive_failures', paused_at = now() - interval '121 hours'
    where id = ${id}
  `
  await change({ url: `${receiver.url}/other`, description: 'moved' })
  expect(await sweepFailing(webhooks.sql)).toBe(0)
  await webhooks.sql`update subscriptions set paused_at = now() - interval '121 hours' where id = ${id}`
  await change({ url: `${receiver.url}/other`, description: 'the same' })
  expect(await sweepFailing(webhooks.sql)).toBe(1)
})

test.each<[string, () => unknown]>([
  ['resumed by its owner', () => change({ status: 'active' })],
  ['paused by its owner', () => change({ status: 'paused' })],
  ['enabled', () => enable()],
  ['healed', () => webhooks.emit({})],
  ['disabled by its endpoint', () => (receiver.respondWith(answer(410)), webhooks.emit({}))],
  ['disabled by the operator', () => disable()],
  ['disabled after five days', () => sweepFailing(webhooks.sql)],
  ['disabled and enabled again', () => disable().then(() => enable())],
])(
  'one that had paused itself and is %s is not told of as paused by itself, nor as disabled when it is not',
  async (_, leave) => {
    await webhooks.sql`
    update subscriptions set status = 'paused', disabled_reason = 'consecutive_failures', paused_at = now() - interval '121 hours'
    where id = ${id}
  `
    await webhooks.sql`insert into lanes (id, grp, failures) values (${id}, ${webhooks.organizationId}, 25)`
    await leave()
    await until(async () => expect((await webhooks.subscription(id)).disabled_reason).not.toBe('consecutive_failures'))
    const { history } = await webhooks.ask(explainSubscription, { body: { id } })
    const past = history.map(({ what }) => what).slice(0, -1)
    expect(past.filter((what) => what.startsWith('paused itself'))).toEqual([])
    const { status } = await webhooks.subscription(id)
    expect(past.filter((what) => what.startsWith('was disabled'))).toHaveLength(status === 'disabled' ? 1 : 0)
  },
)

test('what is done by hand is told, and only when it is something else than before', async () => {
  const steps: [() => Promise<unknown>, string[]][] = [
    [() => change({ status: 'paused' }), ['paused', id, 'manual']],
    [() => change({ status: 'active' }), ['resumed', id, 'manual']],
    [() => disable(), ['disabled', id, 'operator']],
    [() => disable().then(() => enable()), ['resumed', id, 'enabled']],
    [
      async () => {
        await webhooks.sql`
          update subscriptions set status = 'paused', disabled_reason = 'consecutive_failures', paused_at = now() where id = ${id}
        `
        await change({ status: 'paused' })
        await change({ status: 'active' })
      },
      ['resumed', id, 'manual'],
    ],
  ]
  for (const [n, [act]] of steps.entries()) {
    await act()
    await until(() => expect(told()).toEqual(steps.slice(0, n + 1).map(([, words]) => words)))
  }
})

test('a 410 is told, too, once', async () => {
  const ends: (() => void)[] = []
  receiver.respondWith((...call) => void ends.push(() => answer(410)(...call)))
  await webhooks.emit({}, {})
  await until(() => expect(ends).toHaveLength(2))
  for (const [n, end] of ends.entries()) {
    end()
    await until(async () =>
      expect(
        (await webhooks.deliveries({ subscription_id: id })).filter((one) => one.error_code === 'gone'),
      ).toHaveLength(n + 1),
    )
  }
  await until(() => expect(told()).toEqual([['disabled', id, 'gone']]))
  expect(await webhooks.subscription(id)).toMatchObject({ status: 'disabled', consecutive_failures: 0 })
  expect(await webhooks.deliveries({ subscription_id: id })).toHaveLength(2)
  expect(await webhooks.sql`select from outbox where headers ->> 'type' like 'webhook.%'`).toHaveLength(1)
})

test('the fifth failure in a row is told once', async () => {
  receiver.respondWith(answer(500))
  await webhooks.emit(...Array.from({ length: 8 }, () => ({})))
  await until(() => expect(told()).toEqual([['failing', id, 'consecutive_failures']]))
  await until(rests)
  await probe()
  await until(rests)
  expect(told()).toHaveLength(1)
})

test('two endpoints that are both dead do not tell of each other for ever', async () => {
  receiver.respondWith(answer(500))
  witness.respondWith(answer(500))
  await webhooks.emit(...Array.from({ length: 5 }, () => ({})))
  await until(() => expect(told()).toContainEqual(['failing', id, 'consecutive_failures']))
  for (let n = 0; n < 6; n++) {
    await until(async () => {
      expect(
        await webhooks.sql`select from due_deliveries where subscription_id = ${witnessId} and begun_at is not null`,
      ).toHaveLength(0)
      expect(await webhooks.sql`select from lanes where id = ${witnessId} and held_until = '-infinity'`).toHaveLength(1)
    })
    const before = witness.got.length
    await webhooks.sql`update due_deliveries set due_at = now() where subscription_id = ${witnessId}`
    await webhooks.sql`
      update lanes set due_at = now(), paced_until = '-infinity', arrivals = arrivals + 1 where id = ${witnessId}
    `
    webhooks.attempts.wake()
    await until(() => expect(witness.got.length).toBeGreaterThan(before))
  }
  await until(async () => {
    expect((await webhooks.subscription(witnessId)).consecutive_failures).toBeGreaterThanOrEqual(5)
  })
  const events =
    await webhooks.sql`select headers->>'type' as type, headers->>'except' as about from outbox where headers->>'type' like 'webhook.%'`
  expect(events).toEqual([{ type: 'webhook.subscription.failing', about: id }])
})
