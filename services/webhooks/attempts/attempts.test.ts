import { createHmac } from 'node:crypto'
import { systemCaller } from '@app/shared/bus/ask.ts'
import { ownSession } from '@app/shared/database/own-session.ts'
import { newId } from '@app/shared/values/ids.ts'
import { createAsRead, lastByOldMs } from './as-read.ts'
import { createExpirySweep, createOverflowSweep } from './give-up.ts'
import type { Attempt } from './open-attempts.ts'
import { createLaneHealth } from './lane-health.ts'
import { createPayloads } from './payloads.ts'
import { recordAttempts } from './record-attempts.ts'
import { signing } from './sign.ts'
import { getWebhookDelivery } from '../deliveries/get-webhook-delivery.ts'
import { createSecret } from '../subscriptions/secrets.ts'
import { freezeFor } from '@app/test/freeze.ts'
import { untilSomebodyWaits } from '@app/test/lock-waits.ts'
import { until } from '@app/test/until.ts'
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import type { TestWebhooks } from '../testing/app.ts'
import { webhooksAndReceivers } from '../testing/webhooks-and-receiver.ts'
import { answer, type Receiver, startReceiver } from '../testing/receiver.ts'

const both = webhooksAndReceivers()
const { theDelivery } = both
let webhooks: TestWebhooks
let receiver: Receiver
beforeEach(() => void ({ webhooks, receiver } = both))

const attemptsOf = (id: string) => webhooks.sql<{ number: number; errorCode: string | null }[]>`
  select number, error_code from attempts where delivery_id = ${id} order by number
`

test('an event is posted with its bytes and the headers of the public API', async () => {
  const { id } = await webhooks.subscribe({ url: receiver.url })
  const payload = '{"b":1,  "a":"é😀\\u0000","n":1e400}'
  const [eventId] = await webhooks.emit({ payload })
  const delivery = await theDelivery({ status: 'succeeded' })
  const [call, ...others] = receiver.got
  expect(others).toEqual([])
  expect(call?.body.toString()).toBe(payload)
  expect(call?.headers).toMatchObject({
    'content-type': 'application/json',
    'content-length': String(Buffer.byteLength(payload)),
    'accept-encoding': 'identity',
    'x-svc-source': 'svc',
    'x-svc-event': 'message.received',
    'x-svc-event-id': eventId,
    'x-svc-delivery-id': delivery.id,
    'x-svc-attempt': '1',
  })
  expect(delivery).toMatchObject({
    subscription_id: id,
    event_id: eventId,
    attempt_count: 1,
    response_status: 200,
    response_body_snippet: 'ok',
    next_attempt_at: null,
    error_code: null,
  })
})

test('every active secret signs, newest first, and neither an expired nor a deleted one', async () => {
  const { id, initial_secret: first } = await webhooks.subscribe({ url: receiver.url })
  const [second, third, fourth] = await webhooks.sql.begin(async (tx) => [
    await createSecret(tx, webhooks.sealKeys, id),
    await createSecret(tx, webhooks.sealKeys, id, new Date(Date.now() - 1_000)),
    await createSecret(tx, webhooks.sealKeys, id),
  ])
  const signedBy = async (secrets: string[]) => {
    const before = receiver.got.length
    await webhooks.emit({})
    await until(() => expect(receiver.got).toHaveLength(before + 1))
    const call = receiver.got[before]
    const header = String(call?.headers['x-svc-signature'])
    const t = /^t=(\d+),/.exec(header)?.[1]
    const expected = secrets.map((secret) =>
      createHmac('sha256', secret)
        .update(`${t}.`)
        .update(call?.body ?? '')
        .digest('hex'),
    )
    expect(header).toBe(`t=${t}${expected.map((hex) => `,v1=${hex}`).join('')}`)
    expect(call?.headers['x-svc-signature-256']).toBe(header)
    expect(Math.abs(Number(t) - Date.now() / 1_000)).toBeLessThan(5)
  }
  expect(third?.text).toMatch(/^whsec_[\w-]{43}$/)
  await signedBy([fourth?.text ?? '', second?.text ?? '', first])
  await webhooks.sql`delete from secrets where id = ${fourth?.id ?? ''}`
  await signedBy([second?.text ?? '', first])
})

describe('before an attempt goes out that was begun a while ago, its subscription is asked for again:', () => {
  async function begunAWhileAgo() {
    const { sql } = webhooks
    const { id: laneId } = await webhooks.subscribe({ url: receiver.url })
    const [{ secrets } = { secrets: '' }] = await sql<
      { secrets: string }[]
    >`select ${signing(sql, sql`${laneId}`)} as secrets`
    return { laneId, url: receiver.url, secrets, readAt: -Infinity } as Attempt
  }

  test.each([
    ['one that paused itself is probed', true, "status = 'paused', disabled_reason = 'consecutive_failures'"],
    ['one that is paused by hand gets nothing', false, "status = 'paused'"],
    ['one that is disabled gets nothing', false, "status = 'disabled', disabled_reason = 'consecutive_failures'"],
    ['one that has another URL gets nothing at the old one', false, "url = url || '/other'"],
  ])('%s', async (_, goesOut, change) => {
    const attempt = await begunAWhileAgo()
    await webhooks.sql`update subscriptions set ${webhooks.sql.unsafe(change)}`
    expect(await createAsRead(webhooks.sql)(attempt)).toBe(goesOut)
  })

  test('one that has other secrets, or is gone, gets nothing', async () => {
    const { sql, sealKeys } = webhooks
    const attempts = [await begunAWhileAgo(), await begunAWhileAgo(), await begunAWhileAgo()] as const
    const [changed, deleted] = attempts
    await sql.begin((tx) => createSecret(tx, sealKeys, changed.laneId))
    await sql`delete from subscriptions where id = ${deleted.laneId}`
    expect(await Promise.all(attempts.map(createAsRead(sql)))).toEqual([false, false, true])
  })

  test('where that fails, nothing goes out', async () => {
    const attempt = await begunAWhileAgo()
    const session = ownSession(webhooks.sql)
    await session.end()
    expect(await createAsRead(session)(attempt)).toBe(false)
  })

  test('the answer is good for a moment, however long it lay here', async () => {
    const { sql } = webhooks
    const isAsRead = createAsRead(sql)
    const attempt = await begunAWhileAgo()
    expect(await isAsRead(attempt)).toBe(true)
    const { going } = await sql.begin(async (tx) => {
      await tx`lock table subscriptions in access exclusive mode`
      const asked = isAsRead(attempt)
      await untilSomebodyWaits(sql)
      const now = performance.now()
      vi.spyOn(performance, 'now').mockReturnValue(now + lastByOldMs)
      return { going: asked }
    })
    expect(await going.finally(() => vi.restoreAllMocks())).toBe(false)
  })
})

test('an endpoint that answers after the wait that it asked for does not wait once more', async () => {
  let now = 0
  const health = createLaneHealth(Infinity, () => now)
  const lane = {
    id: newId('wbs'),
    group: webhooks.organizationId,
    arrivals: '1',
    heldUntil: 'infinity',
    failures: 0,
    pacedMs: 0,
  }
  const record = (number: number, came: { kind: 'succeeded' } | { kind: 'wait'; waitMs: number }) => {
    const item = { id: newId('wbd'), laneId: lane.id, line: null, replayId: null, number } as Attempt
    const attempt = { startedAtMs: Date.now(), durationMs: 1, status: 200, snippet: null, error: null }
    return webhooks.sql.begin((tx) =>
      recordAttempts(tx, [{ item, lane, outcome: { ...came, attempt } }], health, async () => {}),
    )
  }
  const [asked] = await record(1, { kind: 'wait', waitMs: 5_000 })
  expect(asked).toMatchObject({ waitMs: 5_000, pacedMs: 5_000 })
  health.commit()
  // As the mailbox does with what a directive says.
  lane.pacedMs = 5_000
  now = 8_000
  expect(await record(1, { kind: 'succeeded' })).toMatchObject([{ waitMs: null, pacedMs: 0 }])
})

test('what a process has not in memory is read as it came, though others came in the same moment', async () => {
  const { sql, organizationId } = webhooks
  const at = new Date()
  const trace = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
  const keys = ['evt_1', 'evt_2', 'evt_3'].map((eventId) => ({ organizationId, eventId, eventAt: at }))
  await sql`
    insert into events (at, organization_id, event_id, type, source, payload, trace)
    select ${at}, ${organizationId}, 'evt_' || n, 'type.' || n, 'upstream', n, ${trace} from generate_series(1, 3) n
  `
  const payloads = createPayloads()
  for (const asked of [keys.slice(1, 2), keys.toReversed()]) {
    const found = await sql.begin((tx) => payloads.find(tx, asked))
    const numbers = asked.map(({ eventId }) => eventId.slice(-1))
    expect(found).toEqual(numbers.map((n) => ({ type: `type.${n}`, source: 'upstream', body: Buffer.from(n), trace })))
  }
})

test('events of two organizations that have one id are delivered each as it is, from memory and from the database', async () => {
  const { sql, payloads, organizationId } = webhooks
  const [other, at] = [newId('org'), new Date()]
  await webhooks.subscribe({ url: receiver.url })
  await webhooks.subscribe({ url: receiver.url }, systemCaller(other))
  const keys = [organizationId, other].map((id) => ({ organizationId: id, eventId: 'evt_same', eventAt: at }))
  await webhooks.emit(...keys.map((key) => ({ ...key, at, payload: JSON.stringify({ of: key.organizationId }) })))
  await until(() => expect(receiver.got).toHaveLength(2))
  for (const kept of [payloads, createPayloads()]) {
    const found = await sql.begin((tx) => kept.find(tx, keys))
    expect(found.map((one) => JSON.parse(String(one?.body)))).toEqual([{ of: organizationId }, { of: other }])
  }
  const rows = await sql<{ id: string; organizationId: string }[]>`select id, organization_id from deliveries`
  expect(rows).toHaveLength(2)
  for (const { id, organizationId: owner } of rows) {
    const shown = await webhooks.ask(getWebhookDelivery, { params: { id } }, systemCaller(owner))
    expect(shown.payload).toEqual({ of: owner })
  }
})

test('a failure is tried again after 5 s, with the same event and the next number', async () => {
  await webhooks.subscribe({ url: receiver.url })
  receiver.respondWith(answer(500, {}, 'oops'))
  await webhooks.emit({})
  const failed = await theDelivery({ status: 'failed' })
  expect(failed).toMatchObject({
    attempt_count: 1,
    response_status: 500,
    response_body_snippet: 'oops',
    error_code: null,
  })
  const waitMs = Date.parse(failed.next_attempt_at ?? '') - Date.parse(failed.last_attempt_at ?? '')
  expect(waitMs).toBeGreaterThan(2_000)
  expect(waitMs).toBeLessThan(8_500)
  // The rest of that time is cut short: its lane waits for it, and for nothing else.
  await until(async () =>
    expect(await webhooks.sql`select held_until::text, due_at from lanes`).toEqual([
      { heldUntil: '-infinity', dueAt: new Date(failed.next_attempt_at ?? '') },
    ]),
  )
  await webhooks.sql`update due_deliveries set due_at = now() + interval '0.5 s'`
  await webhooks.sql`update lanes set due_at = now() + interval '0.5 s'`
  const cutAt = performance.now()
  receiver.respondWith(answer(204))
  const succeeded = await theDelivery({ status: 'succeeded' })
  expect(performance.now() - cutAt).toBeGreaterThan(400)
  expect(succeeded).toMatchObject({ id: failed.id, attempt_count: 2, response_status: 204 })
  const [first, second] = receiver.got
  expect(second?.headers['x-svc-attempt']).toBe('2')
  expect(second?.headers['x-svc-event-id']).toBe(first?.headers['x-svc-event-id'])
})

test('the twelfth try is the last', async () => {
  await webhooks.subscribe({ url: receiver.url })
  await webhooks.emit({})
  receiver.respondWith(answer(500))
  for (let n = 1; n <= 12; n++) {
    await until(() => expect(receiver.got.length).toBe(n))
    if (n === 12) break
    await until(async () => {
      const rows = await webhooks.sql`
        select d.attempts, d.begun_at, l.held_until::text from due_deliveries d join lanes l on l.id = d.subscription_id
      `
      expect(rows).toEqual([{ attempts: n, begunAt: null, heldUntil: '-infinity' }])
    })
    // Without this the fifth failure would open the breaker, whose probes are no tries.
    await webhooks.sql`update lanes set failures = 0`
    await webhooks.hurry()
  }
  const dead = await theDelivery({ status: 'dead' })
  expect(dead).toMatchObject({ attempt_count: 12, next_attempt_at: null, response_status: 500, error_code: null })
  expect(await attemptsOf(dead.id)).toHaveLength(12)
})

test('a redirect is not followed', async () => {
  const elsewhere = await startReceiver()
  await webhooks.subscribe({ url: receiver.url })
  receiver.respondWith(answer(302, { location: elsewhere.url }))
  await webhooks.emit({})
  expect(await theDelivery({ status: 'failed' })).toMatchObject({
    response_status: 302,
    error_code: 'redirect_not_followed',
    error_message: expect.stringContaining('subscribe the address that it leads to'),
  })
  expect(elsewhere.got).toEqual([])
  await elsewhere.close()
})

test('a refused connection has no status, and says so', async () => {
  const closed = await startReceiver()
  await closed.close()
  await webhooks.subscribe({ url: closed.url })
  await webhooks.emit({})
  expect(await theDelivery({ status: 'failed' })).toMatchObject({
    response_status: null,
    response_body_snippet: null,
    error_code: 'connection_refused',
    error_message: 'The connection was refused.',
  })
})

test('an address that became private is refused, and tells nothing', async () => {
  const { id } = await webhooks.subscribe({ url: receiver.url })
  await webhooks.sql`update subscriptions set url = 'https://10.0.0.1/' where id = ${id}`
  await webhooks.emit({})
  expect(await theDelivery({ status: 'failed' })).toMatchObject({
    error_code: 'blocked_address',
    error_message:
      'The address must be https and public, or the operator has to allow its network in EGRESS_ALLOW_CIDRS.',
    response_body_snippet: null,
  })
})

test('410 ends the delivery, disables the subscription, and what waits for it is dead', async () => {
  const { id } = await webhooks.subscribe({ url: receiver.url })
  receiver.respondWith(answer(500))
  const [first] = await webhooks.emit({})
  await theDelivery({ status: 'failed' })
  receiver.respondWith(answer(410, {}, 'bye'))
  const [second] = await webhooks.emit({})
  await until(async () => expect(await webhooks.deliveries({ status: 'dead' })).toHaveLength(2))
  const [later] = await webhooks.emit({})
  await until(async () => expect(await webhooks.deliveries({ status: 'dead' })).toHaveLength(3))
  const dead = await webhooks.deliveries({ status: 'dead' })
  const codeOf = (eventId?: string) => dead.find(({ event_id }) => event_id === eventId)?.error_code
  expect([first, second, later].map(codeOf)).toEqual(['subscription_disabled', 'gone', 'subscription_disabled'])
  expect(receiver.got).toHaveLength(2)
  expect(await webhooks.subscription(id)).toMatchObject({ status: 'disabled', disabled_reason: 'gone' })
})

test.each([
  [429, { 'retry-after': '600' }, 600_000],
  [429, {}, 60_000],
  [503, { 'retry-after': '600' }, 600_000],
])('%i %j: the whole endpoint waits, and no try is used', async (status, headers, waitMs) => {
  const { id } = await webhooks.subscribe({ url: receiver.url })
  receiver.respondWith(answer(status, headers))
  await webhooks.emit({})
  const waiting = await theDelivery({ status: 'failed' })
  const nextAt = Date.parse(waiting.next_attempt_at ?? '')
  expect(Math.abs(nextAt - Date.now() - waitMs)).toBeLessThan(5_000)
  await webhooks.emit({})
  await until(async () => expect(await webhooks.deliveries()).toHaveLength(2))
  expect(await webhooks.subscription(id)).toMatchObject({ consecutive_failures: 0 })
  const [open] = await webhooks.sql`select tries, attempts from due_deliveries where id = ${waiting.id}`
  expect(open).toEqual({ tries: 0, attempts: 1 })
  expect(receiver.got).toHaveLength(1)
})

test.each([
  [429, '0'],
  [503, 'Fri, 20 Nov 2020 10:00:00 GMT'],
])('%i with Retry-After %j: the next attempt is seconds away, and further each time', async (status, asked) => {
  const { id } = await webhooks.subscribe({ url: receiver.url })
  receiver.respondWith(answer(status, { 'retry-after': asked }))
  await webhooks.emit({})
  for (const [waits, leastMs] of [3_900, 7_900, 15_900].entries()) {
    const waitMs = await until(async () => {
      const [row] = await webhooks.sql<{ attempts: number; waitMs: number }[]>`
        select d.attempts, (extract(epoch from d.due_at - a.started_at) * 1000)::float8 as wait_ms
        from due_deliveries d join attempts a on a.delivery_id = d.id and a.number = d.attempts
        join lanes l on l.id = d.subscription_id and l.held_until = '-infinity'
      `
      expect(row?.attempts).toBe(waits + 1)
      return row?.waitMs
    })
    expect(waitMs).toBeGreaterThan(leastMs)
    expect(receiver.got).toHaveLength(waits + 1)
    await webhooks.hurry()
  }
  expect(await webhooks.subscription(id)).toMatchObject({ consecutive_failures: 0 })
})

test('503 without Retry-After is a failure', async () => {
  const { id } = await webhooks.subscribe({ url: receiver.url })
  receiver.respondWith(answer(503))
  await webhooks.emit({})
  await theDelivery({ status: 'failed' })
  expect(await webhooks.subscription(id)).toMatchObject({ consecutive_failures: 1 })
})

test('an attempt whose connection comes late, in a process that was frozen, goes back, and is made when its lane is held again', async () => {
  const { dispatcher } = webhooks.egress
  let dispatches = 0
  const freezing = dispatcher.compose((dispatch) => (options, handler) => {
    if (dispatches++ === 0) freezeFor(4_600)
    return dispatch(options, handler)
  })
  Object.assign(webhooks.egress, { dispatcher: freezing })
  onTestFinished(() => void Object.assign(webhooks.egress, { dispatcher }))
  await webhooks.subscribe({ url: receiver.url })
  await webhooks.emit({})
  expect(await theDelivery({ status: 'succeeded' })).toMatchObject({ attempt_count: 1 })
  expect([dispatches, receiver.got.length]).toEqual([2, 1])
})

test('an attempt that its process did not survive is recorded, and made again with the next number', async () => {
  await webhooks.subscribe({ url: receiver.url })
  await webhooks.sql`update subscriptions set status = 'paused'`
  await webhooks.emit({})
  const pending = await theDelivery({ status: 'pending' })
  await webhooks.sql`update due_deliveries set attempts = 1, begun_at = now() - interval '30 s'`
  await webhooks.sql`update subscriptions set status = 'active'`
  await webhooks.hurry()
  expect(await theDelivery({ status: 'succeeded' })).toMatchObject({ id: pending.id, attempt_count: 2 })
  expect(await attemptsOf(pending.id)).toEqual([
    { number: 1, errorCode: 'interrupted' },
    { number: 2, errorCode: null },
  ])
  expect(receiver.got.map(({ headers }) => headers['x-svc-attempt'])).toEqual(['2'])
})

test('a paused subscription holds its deliveries', async () => {
  await webhooks.subscribe({ url: receiver.url })
  await webhooks.sql`update subscriptions set status = 'paused'`
  await webhooks.emit({})
  const held = await theDelivery({ status: 'pending' })
  await webhooks.hurry()
  await until(async () => {
    const [lane] = await webhooks.sql`select due_at, held_until::text from lanes`
    expect(lane).toEqual({ dueAt: null, heldUntil: '-infinity' })
  })
  expect([held.attempt_count, receiver.got.length]).toEqual([0, 0])
})

/** How many were given up, as operators are told. */
async function givenUp(reason: string) {
  const told = await webhooks.meters.dead.get()
  return told.values.find(({ labels }) => labels.reason === reason)?.value ?? NaN
}

test('what waited for seven days is dead, and says why', async () => {
  await webhooks.subscribe({ url: receiver.url })
  await webhooks.sql`update subscriptions set status = 'paused', created_at = now() - interval '30 days'`
  await webhooks.emit(...[8, 6.9, 0].map((days) => ({ at: new Date(Date.now() - days * 24 * 60 * 60 * 1000) })))
  await until(async () => expect(await webhooks.deliveries({ status: 'pending' })).toHaveLength(3))
  const before = await givenUp('expired')
  expect(await createExpirySweep(webhooks)(webhooks.sql)).toBe(1)
  expect(await theDelivery({ status: 'dead' })).toMatchObject({ error_code: 'expired', attempt_count: 0 })
  expect((await givenUp('expired')) - before).toBe(1)
})

test('what is behind it in a customer’s line goes out then, and does not wait for its next attempt', async () => {
  await webhooks.subscribe({ url: receiver.url })
  await webhooks.sql`update subscriptions set created_at = now() - interval '30 days'`
  receiver.respondWith(answer(500))
  await webhooks.emit({ line: 'ctm_1', at: new Date(Date.now() - 8 * 24 * 60 * 60 * 1000) })
  await theDelivery({ status: 'failed' })
  const [behind] = await webhooks.emit({ line: 'ctm_1' })
  await theDelivery({ status: 'pending' })
  receiver.respondWith(answer(200))
  await webhooks.sql`update due_deliveries set due_at = now() + interval '20 hours' where due_at is not null`
  await until(async () => {
    const { count } = await webhooks.sql`
      update lanes set due_at = now() + interval '20 hours' where held_until = '-infinity' and due_at > now() returning id
    `
    expect(count).toBe(1)
  })
  expect(await createExpirySweep(webhooks)(webhooks.sql)).toBe(1)
  expect(await theDelivery({ status: 'succeeded' })).toMatchObject({ event_id: behind })
})

test('what a subscription holds beyond as many as it may is dead, the oldest first, however much is open, and operators are told', async () => {
  const { id } = await webhooks.subscribe({ url: receiver.url })
  await webhooks.sql`update subscriptions set status = 'paused'`
  await webhooks.sql`
    insert into due_deliveries (id, organization_id, subscription_id, event_at, event_id, due_at)
    select 'wbd_7' || lpad(n::text, 25, '0'), ${webhooks.organizationId}, ${id}, now(), 'evt_' || n, now()
    from generate_series(1, 20003) n
  `
  await webhooks.sql`analyze due_deliveries`
  const session = ownSession(webhooks.sql)
  const readWhole = async () => {
    await session`select pg_stat_force_next_flush()`
    const [row] = await session`select seq_scan::int as times from pg_stat_user_tables where relname = 'due_deliveries'`
    return row?.['times']
  }
  const before = await readWhole()
  expect(await createOverflowSweep(webhooks)(session)).toBe(0)
  const warn = vi.spyOn(webhooks.log, 'warn')
  const sweep = createOverflowSweep(webhooks, 20_000)
  const counted = await givenUp('overflow')
  expect([await sweep(session), await sweep(session)]).toEqual([3, 0])
  expect((await givenUp('overflow')) - counted).toBe(3)
  expect(warn.mock.calls.map(([said]) => said)).toEqual([{ subscription: id, count: 3 }])
  warn.mockRestore()
  // What is open altogether may be many millions.
  expect(await readWhole()).toBe(before)
  await session.end()
  const dead = await webhooks.sql`select right(id, 5)::int as n, error_code from dead_deliveries order by id`
  expect(dead.map(({ n, errorCode }) => [n, errorCode])).toEqual([1, 2, 3].map((n) => [n, 'expired']))
})

test('what the last of many subscriptions holds beyond that is found, if not in the first run', async () => {
  const { sql, organizationId } = webhooks
  await sql`
    insert into due_deliveries (id, organization_id, subscription_id, event_at, event_id)
    select 'wbd_' || n, ${organizationId}, 'wbs_' || lpad(least(n, 30)::text, 26, '0'), now(), 'evt_' || n
    from generate_series(1, 32) n
  `
  const sweep = createOverflowSweep(webhooks, 1)
  const found: number[] = []
  for (let run = 0; run < 8; run++) found.push(await sweep(sql))
  expect(found).toEqual([0, 0, 2, 0, 0, 0, 0, 0])
})
