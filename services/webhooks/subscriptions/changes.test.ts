import { createHmac } from 'node:crypto'
import { systemCaller } from '@app/shared/bus/ask.ts'
import { ownSession } from '@app/shared/database/own-session.ts'
import { firstIdAt, newId } from '@app/shared/values/ids.ts'
import { toProblem } from '@app/shared/api/problem.ts'
import { untilSomebodyWaits } from '@app/test/lock-waits.ts'
import { until } from '@app/test/until.ts'
import { beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { recordEvents, toRow } from '../fan-out/record-events.ts'
import { ownNumber, type TestWebhooks } from '../testing/app.ts'
import { answer, type Receiver, type Respond, startReceiver } from '../testing/receiver.ts'
import { oneSubscription } from '../testing/one-subscription.ts'
import { createWebhookSecret } from './create-webhook-secret.ts'
import { deleteWebhookSecret } from './delete-webhook-secret.ts'
import { deleteWebhookSubscription } from './delete-webhook-subscription.ts'
import { disableWebhookSubscription, sweepFailing } from './disable-webhook-subscription.ts'
import { sweepSecrets } from './secrets.ts'
import { testWebhookSubscription } from './test-webhook-subscription.ts'

let webhooks: TestWebhooks
let receiver: Receiver
let id: string

const one = oneSubscription()
const { patch, enable, gotIds } = one
beforeAll(() => void ({ webhooks, receiver } = one))
beforeEach(() => void ({ id } = one))

const disable = () => webhooks.ask(disableWebhookSubscription, { body: { subscription_id: id } })
const remove = () => webhooks.ask(deleteWebhookSubscription, { params: { id } })
const addSecret = (body: { expires_in_hours?: number } = {}) =>
  webhooks.ask(createWebhookSecret, { params: { id }, body })
const revoke = (secret_id: string) => webhooks.ask(deleteWebhookSecret, { params: { id, secret_id } })
const sendTest = () => webhooks.ask(testWebhookSubscription, { params: { id } })

const failureOf = (work: Promise<unknown>) =>
  work.then(
    () => null,
    (err: unknown) => toProblem(err),
  )

/** An event that begins to be recorded before `act`, and is recorded after it; answers its id. */
async function recordedWhile(act: () => Promise<unknown>) {
  const [at, event] = [new Date().toISOString(), newId('evt')]
  const headers = { organization: webhooks.organizationId, event, type: 'message.received', at }
  const row = toRow({ subject: 'event.messaging.message-received', headers, payload: Buffer.from('{}') })
  const patient = ownSession(webhooks.sql, { lock_timeout: '20s' })
  onTestFinished(() => patient.end())
  const { recording } = await webhooks.sql.begin(async (tx) => {
    await tx`savepoint before`
    await tx`
      insert into events (at, organization_id, event_id, type, source, payload)
      values (${at}, ${webhooks.organizationId}, ${event}, 'message.received', 'svc', '{}')
    `
    const begun = { recording: recordEvents(patient, row ? [row] : []) }
    await untilSomebodyWaits(webhooks.sql)
    await act()
    await tx`rollback to savepoint before`
    return begun
  })
  expect(await recording).toMatchObject([{ count: 1 }])
  return event
}

describe('a change', () => {
  test('is what the subscription is from then on', async () => {
    const changed = await patch({
      url: `${receiver.url}/other`,
      events: ['contact.created'],
      description: 'second',
      phone_number_ids: [ownNumber, ownNumber],
    })
    expect(changed).toMatchObject({
      url: `${receiver.url}/other`,
      events: ['contact.created'],
      description: 'second',
      phone_number_ids: [ownNumber],
      status: 'active',
    })
    expect(await webhooks.subscription(id)).toEqual(changed)
    expect(await patch({ description: null, phone_number_ids: null })).toMatchObject({
      description: null,
      phone_number_ids: null,
      events: ['contact.created'],
    })
    const [, wanted] = await webhooks.emit({}, { type: 'contact.created' })
    await until(() => expect(gotIds()).toEqual([wanted]))
  })

  test('that changes nothing leaves it as it was', async () => {
    const before = await webhooks.subscription(id)
    expect(await patch({})).toEqual(before)
    expect(await patch({ url: receiver.url, events: ['message.received'], status: 'active' })).toEqual(before)
    expect(await webhooks.sql`select id from outbox`).toEqual([])
  })

  test('is refused for a URL that is not public, and for a number of somebody else', async () => {
    expect(await failureOf(patch({ url: 'https://10.0.0.1/' }))).toMatchObject({ param: 'url' })
    expect(await failureOf(patch({ phone_number_ids: [ownNumber, '999999999999'] }))).toMatchObject({
      failure: 'invalid_field_value',
      param: 'phone_number_ids[1]',
    })
  })

  test('of somebody else’s subscription is a 404, whatever it says', async () => {
    const stranger = systemCaller(newId('org'))
    for (const body of [{}, { url: 'https://10.0.0.1/' }, { phone_number_ids: ['999999999999'] }]) {
      expect(await failureOf(patch(body, stranger))).toMatchObject({ failure: 'resource_not_found' })
    }
  })
})

describe('a subscription that is paused by hand', () => {
  test('holds what comes, and sends it when it is resumed', async () => {
    expect(await patch({ status: 'paused' })).toMatchObject({ status: 'paused', disabled_reason: null })
    const held = await webhooks.emit(...Array.from({ length: 30 }, () => ({})))
    await until(async () => expect(await webhooks.deliveries({ status: 'pending' })).toHaveLength(30))
    expect(receiver.got).toEqual([])
    expect(await patch({ status: 'active' })).toMatchObject({ status: 'active', disabled_reason: null })
    await until(() => expect(new Set(gotIds())).toEqual(new Set(held)))
    expect(receiver.got).toHaveLength(30)
  })

  test('gives an event that comes after its resumption a turn before its backlog is through', async () => {
    await patch({ status: 'paused' })
    await webhooks.emit(...Array.from({ length: 90 }, () => ({})))
    await until(async () => expect(await webhooks.deliveries({ status: 'pending' })).toHaveLength(90))
    await webhooks.sql`update due_deliveries set due_at = now() - interval '1 hour'`
    receiver.respondWith((response) => void setTimeout(() => response.end(), 50))
    await patch({ status: 'active' })
    await until(() => expect(receiver.got.length).toBeGreaterThan(10))
    const [fresh = ''] = await webhooks.emit({})
    await until(() => expect(gotIds()).toContain(fresh))
    expect(gotIds().indexOf(fresh)).toBeLessThan(80)
    await until(() => expect(receiver.got).toHaveLength(91))
    expect(new Set(gotIds()).size).toBe(91)
  })

  test.each([
    ['what', 1],
    ['the first event that', 0],
  ])('gets at once %s was just being recorded for it when it was resumed', async (_, before) => {
    await patch({ status: 'paused' })
    const held = await webhooks.emit(...Array.from({ length: before }, () => ({})))
    await until(async () => expect(await webhooks.deliveries({ status: 'pending' })).toHaveLength(before))
    const event = await recordedWhile(async () => {
      await patch({ status: 'active' })
      await until(async () => {
        const awake = await webhooks.sql`select id from lanes where due_at is not null or held_until > now()`
        expect([gotIds(), awake]).toEqual([held, []])
      })
    })
    await until(() => expect(gotIds()).toEqual([...held, event]))
  })

  test.each([
    ['disabled', disable, 'subscription_disabled'],
    ['deleted', remove, 'subscription_deleted'],
  ])('leaves nothing open of the first event that was just being recorded when it was %s', async (_, end, why) => {
    await patch({ status: 'paused' })
    const event = await recordedWhile(end)
    await until(async () => {
      expect(await webhooks.deliveries()).toMatchObject([{ event_id: event, status: 'dead', error_code: why }])
    }, 5_000)
  })

  test('is not probed, though it had paused itself before', async () => {
    await webhooks.sql`update subscriptions set status = 'paused', disabled_reason = 'consecutive_failures', paused_at = now()`
    await webhooks.emit({})
    await webhooks.sql`update lanes set failures = 20, due_at = now() + interval '1 hour'`
    expect(await patch({ status: 'paused' })).toMatchObject({ status: 'paused', disabled_reason: null })
    await webhooks.hurry()
    await until(async () => {
      expect(await webhooks.sql`select due_at from lanes`).toEqual([{ dueAt: null }])
    })
    expect(receiver.got).toEqual([])
  })
})

test('one that had paused itself begins anew when it is enabled', async () => {
  await webhooks.sql`update subscriptions set status = 'paused', disabled_reason = 'consecutive_failures', paused_at = now()`
  const [eventId] = await webhooks.emit({})
  await until(async () => expect(await webhooks.deliveries()).toHaveLength(1))
  await webhooks.sql`update lanes set failures = 20, due_at = now() + interval '1 hour', paced_until = now() + interval '1 hour'`
  expect(await enable()).toMatchObject({ status: 'active', consecutive_failures: 0 })
  await until(() => expect(gotIds()).toEqual([eventId]))
})

test('one that had paused itself begins anew when it is resumed', async () => {
  await webhooks.sql`update subscriptions set status = 'paused', disabled_reason = 'consecutive_failures', paused_at = now()`
  const [eventId] = await webhooks.emit({})
  await until(async () => expect(await webhooks.deliveries()).toHaveLength(1))
  await webhooks.sql`update lanes set failures = 20, due_at = now() + interval '1 hour', paced_until = now() + interval '1 hour'`
  expect(await patch({ status: 'active' })).toMatchObject({ status: 'active', consecutive_failures: 0 })
  await until(() => expect(gotIds()).toEqual([eventId]))
})

test('one that is resumed while it is probed does not rest for that probe', async () => {
  const out: (() => void)[] = []
  receiver.respondWith((...call) => void out.push(() => answer(500)(...call)))
  await webhooks.sql`update subscriptions set status = 'paused', disabled_reason = 'consecutive_failures', paused_at = now()`
  await webhooks.sql`insert into lanes (id, grp, failures) values (${id}, ${webhooks.organizationId}, 20)`
  await webhooks.emit({})
  await until(() => expect(out).toHaveLength(1))
  await patch({ status: 'active' })
  await webhooks.emit({})
  await until(() => expect(out).toHaveLength(2))
  out[0]?.()
  await until(async () => expect(await webhooks.deliveries({ status: 'failed' })).toHaveLength(1))
  out[1]?.()
  await until(() => expect(out).toHaveLength(3))
  out[2]?.()
})

describe('a disabled subscription', () => {
  const refusals = [
    ['a change', () => patch({ description: 'x' })],
    ['a resumption', () => patch({ status: 'active' })],
    ['a secret', () => addSecret()],
    ['a test', () => sendTest()],
  ] as const

  test('can be read, and refuses everything but to be enabled', async () => {
    await patch({ status: 'paused' })
    await webhooks.emit({}, {})
    await until(async () => expect(await webhooks.deliveries({ status: 'pending' })).toHaveLength(2))
    expect(await disable()).toMatchObject({ status: 'disabled', disabled_reason: 'operator' })
    await until(async () => expect(await webhooks.deliveries({ status: 'dead' })).toHaveLength(2))
    for (const [what, ask] of refusals) {
      expect(await failureOf(ask()), what).toMatchObject({ failure: 'webhook_subscription_disabled' })
    }
    const [secret] = (await webhooks.subscription(id)).secrets
    expect(await failureOf(revoke(secret?.id ?? ''))).toMatchObject({ failure: 'webhook_subscription_disabled' })

    const enabled = await enable({ url: `${receiver.url}/new` })
    expect(enabled).toMatchObject({
      status: 'active',
      disabled_reason: null,
      consecutive_failures: 0,
      url: `${receiver.url}/new`,
      replayable_count: 2,
    })
    const [eventId] = await webhooks.emit({})
    await until(() => expect(gotIds()).toEqual([eventId]))
    expect(await enable()).toMatchObject({ status: 'active', url: `${receiver.url}/new` })
  })

  describe('lets what it holds die at once, though its endpoint asked for a day’s rest,', () => {
    const aDay: Respond = answer(429, { 'retry-after': '86400' })
    const out: ((respond: Respond) => void)[] = []

    /** Some attempts are out, the others wait for them. */
    async function holdTwelve() {
      out.length = 0
      receiver.respondWith((...call) => void out.push((respond) => respond(...call)))
      await webhooks.emit(...Array.from({ length: 12 }, () => ({})))
      await until(async () => {
        expect(out.length).toBeGreaterThan(1)
        expect(await webhooks.deliveries()).toHaveLength(12)
      })
    }
    const allAreOver = () =>
      until(async () => {
        out.splice(0).forEach((end) => end(aDay))
        expect(await webhooks.sql`select id from due_deliveries`).toEqual([])
      }, 10_000)

    test('in an attempt that was out', async () => {
      await holdTwelve()
      await disable()
      await allAreOver()
    })

    test('by itself for five days, and its last probe is told to rest', async () => {
      await webhooks.sql`update subscriptions set status = 'paused'`
      await webhooks.sql`insert into lanes (id, grp, failures) values (${id}, ${webhooks.organizationId}, 20)`
      await webhooks.emit({}, {}, {})
      await until(async () => expect(await webhooks.deliveries()).toHaveLength(3))
      out.length = 0
      receiver.respondWith((...call) => void out.push((respond) => respond(...call)))
      await webhooks.sql`
        update subscriptions set disabled_reason = 'consecutive_failures', paused_at = now() - interval '121 hours'
      `
      await webhooks.hurry()
      await until(() => expect(out).toHaveLength(1))
      expect(await sweepFailing(webhooks.sql)).toBe(1)
      await allAreOver()
    })

    test('and answered 410 beside that', async () => {
      await holdTwelve()
      out.shift()?.(aDay)
      await until(async () => expect(await webhooks.deliveries({ status: 'failed' })).toHaveLength(1))
      out.shift()?.(answer(410))
      await until(async () => expect(await webhooks.subscription(id)).toMatchObject({ disabled_reason: 'gone' }))
      await allAreOver()
    })
  })

  test.each(refusals)('refuses %s that was asked for before it was disabled and comes behind that', async (_, ask) => {
    const { asked } = await webhooks.sql.begin(async (tx) => {
      await tx`update subscriptions set status = 'disabled', disabled_reason = 'operator', disabled_at = now()`
      const waiting = failureOf(ask())
      await untilSomebodyWaits(tx)
      return { asked: waiting }
    })
    expect(await asked).toMatchObject({ failure: 'webhook_subscription_disabled' })
    expect(await webhooks.subscription(id)).toMatchObject({ status: 'disabled', disabled_reason: 'operator' })
  })

  test('counts what can be replayed: what died of it, and of which the payload is still kept', async () => {
    const ids = [31, 29].map((days) => firstIdAt('wbd', new Date(Date.now() - days * 24 * 3_600_000)))
    await webhooks.sql`
      insert into dead_deliveries (id, organization_id, subscription_id, event_type)
      select d, ${webhooks.organizationId}, ${id}, 'message.received' from unnest(${ids}::text[]) d
      union all select ${ids.at(-1) ?? ''} || '2', ${webhooks.organizationId}, 'wbs_2', 'message.received'
    `
    expect(await enable()).toMatchObject({ replayable_count: 1 })
  })

  test('takes the URL also when it has become active meanwhile, and is not told of again', async () => {
    const told = () => webhooks.sql`select from outbox where headers ->> 'type' = 'webhook.subscription.resumed'`
    const { count } = await told()
    expect(await enable({ url: `${receiver.url}/new` })).toMatchObject({ status: 'active', url: `${receiver.url}/new` })
    const [eventId] = await webhooks.emit({})
    await until(() => expect(gotIds()).toEqual([eventId]))
    expect((await told()).count).toBe(count)
  })

  test('is not enabled at a URL that is not public', async () => {
    await disable()
    expect(await failureOf(enable({ url: 'https://10.0.0.1/' }))).toMatchObject({ param: 'url' })
    expect(await webhooks.subscription(id)).toMatchObject({ status: 'disabled' })
  })
})

test('to enable what is active at its URL changes nothing', async () => {
  await webhooks.sql`insert into lanes (id, grp, failures) values (${id}, ${webhooks.organizationId}, 3)`
  const before = await webhooks.subscription(id)
  expect(before).toMatchObject({ status: 'active', consecutive_failures: 3 })
  expect(await enable({ url: receiver.url })).toEqual({ ...before, replayable_count: 0 })
})

test.each([
  ['resumed', () => patch({ status: 'active' })],
  ['enabled', () => enable()],
])(
  'what is to be tried again stays at its time when its subscription is %s at the URL that it has',
  async (_, resume) => {
    receiver.respondWith(answer(500))
    await webhooks.emit({})
    await until(async () => expect(await webhooks.deliveries({ status: 'failed' })).toHaveLength(1))
    await webhooks.sql`update due_deliveries set due_at = now() + interval '1 hour'`
    await patch({ status: 'paused' })
    await resume()
    expect(await webhooks.sql`select due_at > now() + interval '59 minutes' as waits from due_deliveries`).toEqual([
      { waits: true },
    ])
  },
)

test('a test event goes to its subscription alone, whatever that selects', async () => {
  const other = await startReceiver()
  await webhooks.subscribe({ url: other.url })
  const answer = await sendTest()
  expect(answer).toMatchObject({ object: 'webhook_delivery', event_type: 'webhook.test', status: 'pending' })
  await until(() => expect(gotIds()).toEqual([answer.event_id]))
  const [got] = receiver.got
  expect(got?.headers).toMatchObject({ 'x-svc-event': 'webhook.test', 'x-svc-delivery-id': answer.id })
  const { initial_secret: _, secrets: __, ...shown } = { initial_secret: '', ...(await webhooks.subscription(id)) }
  expect(JSON.parse(String(got?.body))).toEqual({
    id: answer.event_id,
    type: 'webhook.test',
    created_at: expect.any(String),
    data: { subscription: shown },
  })
  await until(async () => expect(await webhooks.delivery(answer.id)).toMatchObject({ status: 'succeeded' }))
  expect(await webhooks.delivery(answer.id)).toMatchObject({ payload: { type: 'webhook.test' } })
  expect(other.got).toEqual([])
  await other.close()
})

describe('secrets', () => {
  test('are shown once, listed without their text, and at most five at a time', async () => {
    const made = await addSecret({ expires_in_hours: 2 })
    expect(made).toEqual({
      id: expect.stringMatching(/^sec_/),
      object: 'webhook_signing_secret',
      secret: expect.stringMatching(/^whsec_[\w-]{43}$/),
      created_at: expect.any(String),
      expires_at: expect.any(String),
    })
    expect(Date.parse(made.expires_at ?? '') - Date.now()).toBeGreaterThan(7_190_000)
    for (let n = 0; n < 3; n++) await addSecret()
    const { secrets } = await webhooks.subscription(id)
    expect(secrets).toHaveLength(5)
    expect(secrets.find((secret) => secret.id === made.id)).toEqual({
      id: made.id,
      created_at: made.created_at,
      expires_at: made.expires_at,
    })
    expect(await failureOf(addSecret())).toMatchObject({ failure: 'too_many_secrets' })
    await webhooks.sql`update secrets set expires_at = now() - interval '1 second' where id = ${made.id}`
    expect(await addSecret()).toMatchObject({ expires_at: null })
    expect(await sweepSecrets(webhooks.sql)).toBe(0)
    await webhooks.sql`update secrets set expires_at = now() - interval '31 days' where id = ${made.id}`
    expect(await sweepSecrets(webhooks.sql)).toBe(1)
  })

  test('are answered again for a repeated key, and stored sealed for that', async () => {
    const caller = { ...webhooks.caller, idempotency: { key: newId('req'), fingerprint: 'f' } }
    const made = await webhooks.ask(createWebhookSecret, { params: { id }, body: {} }, caller)
    expect(await webhooks.ask(createWebhookSecret, { params: { id }, body: {} }, caller)).toEqual(made)
    const stored = await webhooks.sql<{ answer: Uint8Array }[]>`select answer from idempotency.keys`
    expect(stored.map(({ answer }) => Buffer.from(answer).toString()).join()).not.toContain(made.secret)
    expect((await webhooks.subscription(id)).secrets.map((secret) => secret.id)).toEqual([
      made.id,
      expect.stringMatching(/^sec_/),
    ])
  })

  test('one without an expiry remains, when all are revoked at the same time', async () => {
    const others = [await addSecret(), await addSecret(), await addSecret({ expires_in_hours: 1 })]
    const { secrets } = await webhooks.subscription(id)
    const results = await Promise.all(secrets.map((secret) => failureOf(revoke(secret.id))))
    expect(results.filter((problem) => problem?.failure === 'last_secret')).toHaveLength(1)
    const left = (await webhooks.subscription(id)).secrets
    expect(left).toMatchObject([{ expires_at: null }])
    const revoked = [...others, ...secrets].find((secret) => secret.id !== left[0]?.id)
    expect(await failureOf(revoke(revoked?.id ?? ''))).toMatchObject({ failure: 'resource_not_found' })
  })

  test('the last one without an expiry stays beside one that expires, which may be revoked', async () => {
    const [lasting] = (await webhooks.subscription(id)).secrets
    const expiring = await addSecret({ expires_in_hours: 1 })
    expect(await failureOf(revoke(lasting?.id ?? ''))).toMatchObject({ failure: 'last_secret' })
    expect(await failureOf(revoke(expiring.id))).toBe(null)
    expect((await webhooks.subscription(id)).secrets).toMatchObject([{ id: lasting?.id }])
  })

  test('that are deleted sign nothing more, though an attempt was begun before and its commit takes long', async () => {
    const made = await addSecret()
    const [first] = (await webhooks.subscription(id)).secrets.filter((secret) => secret.id !== made.id)
    const [begun, deleted] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const { find } = webhooks.payloads
    const slowly = vi.spyOn(webhooks.payloads, 'find').mockImplementation(async (tx, keys) => {
      if (keys.length > 0) begun.resolve()
      await deleted.promise
      return find(tx, keys)
    })
    onTestFinished(() => {
      deleted.resolve()
      slowly.mockRestore()
    })
    await webhooks.emit({})
    await begun.promise
    await revoke(first?.id ?? '')
    deleted.resolve()
    await until(() => expect(receiver.got).toHaveLength(1))
    const [got] = receiver.got
    const [, t] = /^t=(\d+),/.exec(String(got?.headers['x-svc-signature'])) ?? []
    const hex = createHmac('sha256', made.secret)
      .update(`${t}.`)
      .update(got?.body ?? '')
      .digest('hex')
    expect(got?.headers).toMatchObject({ 'x-svc-signature': `t=${t},v1=${hex}`, 'x-svc-attempt': '1' })
  })

  test('of another subscription are not found', async () => {
    const other = await webhooks.subscribe({ url: receiver.url })
    expect(await failureOf(revoke(other.secrets[0]?.id ?? ''))).toMatchObject({ failure: 'resource_not_found' })
  })
})
