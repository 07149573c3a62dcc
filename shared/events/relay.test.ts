import { setTimeout as sleep } from 'node:timers/promises'
import { testService, type TestService } from '@app/test/service.ts'
import { untilSomebodyWaits } from '@app/test/lock-waits.ts'
import { until } from '@app/test/until.ts'
import { NatsError } from 'nats'
import { Registry } from 'prom-client'
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { z } from 'zod'
import { event } from '../api/contract.ts'
import { newId } from '../values/ids.ts'
import { consumeBatches } from './consume.ts'
import { record, recorded } from './events.ts'
import { consumers, restoreStream } from './provision.ts'
import { startRelay } from './relay.ts'
import { streamName } from './stream.ts'

const changed = event({ subject: 'event.platform.customer-changed', summary: 'Test', data: z.object({ n: z.int() }) })
const organizationId = newId('org')

let app: TestService
beforeAll(async () => (app = await testService('platform')))
afterAll(() => app.close())

const waiting = () => app.sql`select from outbox where published_at is null and refused is null`
const untilAllIsPublished = () => until(async () => expect(await waiting()).toEqual([]))

/** The service, with a stream that turns away the first publish of one event. */
function turningAway(id: string) {
  const { request } = app.eventBus
  let isTurnedAway = false
  const refusing: typeof request = async (subject, body, headers, ...rest) => {
    if (isTurnedAway || headers.get('Nats-Msg-Id') !== id) return request(subject, body, headers, ...rest)
    isTurnedAway = true
    throw new Error('too many requests')
  }
  return { ...app, eventBus: { ...app.eventBus, request: refusing } }
}

test('events of a line reach the stream in their order, also when one of them is turned away; others do not wait', async () => {
  const seen: string[] = []
  const consuming = consumeBatches(app, consumers.webhooksFanOut.name, async (events) => {
    for (const { headers, payload } of events) {
      const { n } = JSON.parse(Buffer.from(payload).toString()) as { n: number }
      seen.push(`${headers.line ?? 'none'} ${n}`)
    }
  })
  const lines = ['cus_1', 'cus_2', undefined]
  const events = [1, 2, 3].flatMap((n) => lines.map((line) => recorded(changed, { n }, { organizationId, line })))
  await app.sql.begin((tx) => record(tx, events))
  const relay = startRelay(turningAway(events[0]?.id ?? ''))
  await until(() => expect(seen).toHaveLength(9))
  await relay.stop()
  await consuming.stop()
  for (const line of ['cus_1', 'cus_2', 'none'])
    expect(seen.filter((one) => one.startsWith(line))).toEqual([1, 2, 3].map((n) => `${line} ${n}`))
  expect(seen.indexOf('cus_2 3')).toBeLessThan(seen.indexOf('cus_1 1'))
})

test('what a stream lost that another service made anew, on a connection that never ended, is published again', async () => {
  const relay = startRelay(app)
  const jsm = await app.nc.jetstreamManager()
  const messages = async () => (await jsm.streams.info(streamName)).state.messages
  await app.sql.begin((tx) => record(tx, [recorded(changed, { n: 4 }, { organizationId })]))
  relay.wake()
  await until(async () => expect(await messages()).toBe(10))
  await jsm.streams.delete(streamName)
  await restoreStream(app.nc, 1)
  // The stream is looked at every few seconds.
  const now = performance.now.bind(performance)
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => now() + 5_000)
  await until(async () => expect(await messages()).toBe(10))
  clock.mockRestore()
  await relay.stop()
})

test.each(['a lost stream', 'an operator'])(
  'what %s makes wait again is found at once, though looks begin behind it just then, since they are dear',
  async (who) => {
    const now = performance.now.bind(performance)
    let ahead = 0
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => now() + ahead)
    onTestFinished(() => clock.mockRestore())
    const relay = startRelay(app)
    const jsm = await app.nc.jetstreamManager()
    await app.sql.begin((tx) => record(tx, [recorded(changed, { n: 5 }, { organizationId })]))
    relay.wake()
    await untilAllIsPublished()
    const { messages: before } = (await jsm.streams.info(streamName)).state
    // From then on the next look that is not at all begins behind them.
    ahead += 10_000
    await app.sql.begin(async (tx) => {
      await tx`lock outbox in access exclusive mode`
      relay.wake()
      await untilSomebodyWaits(app.sql)
      ahead += 3_000
    })
    if (who === 'a lost stream') {
      await jsm.streams.delete(streamName)
      await restoreStream(app.nc, 1)
      ahead += 5_000
    }
    const stopped = performance.now()
    clock.mockImplementation(() => stopped)
    if (who === 'an operator') await relay.redrive(new Date(0))
    relay.wake()
    await until(async () => expect((await jsm.streams.info(streamName)).state.messages).toBe(before))
    await untilAllIsPublished()
    clock.mockRestore()
    await relay.stop()
  },
)

test('what happens after an event that a stream lost comes behind it, once that is published again', async () => {
  const relay = startRelay(app)
  const jsm = await app.nc.jetstreamManager()
  const before = (await jsm.streams.info(streamName)).state.messages
  const emit = async (n: number) => {
    await app.sql.begin((tx) => record(tx, [recorded(changed, { n }, { organizationId, line: 'cus_3' })]))
    relay.wake()
  }
  const published = (count: number) =>
    until(async () => expect((await jsm.streams.info(streamName)).state.messages).toBe(before + count))
  await emit(11)
  await published(1)
  await jsm.streams.delete(streamName)
  await restoreStream(app.nc, 1)
  await emit(12)
  await published(2)
  await relay.stop()
  const stored = Array.from({ length: before + 2 }, async (_, n) =>
    (await jsm.streams.getMessage(streamName, { seq: n + 1 })).json<{ n: number }>(),
  )
  expect((await Promise.all(stored)).map(({ n }) => n).filter((n) => n > 10)).toEqual([11, 12])
})

test('while nobody tells what the stream has, no event of a line goes out, and the stream is asked again after a pause', async () => {
  const relay = startRelay(app)
  await app.sql.begin((tx) => record(tx, [recorded(changed, { n: 13 }, { organizationId, line: 'cus_4' })]))
  relay.wake()
  await untilAllIsPublished()
  const jsm = await app.nc.jetstreamManager()
  const { last_seq: before } = (await jsm.streams.info(streamName)).state
  const warned = vi.spyOn(app.log, 'warn')
  const asked = vi.spyOn(app.eventBus.nc, 'jetstreamManager').mockRejectedValue(new NatsError('electing', '503'))
  await app.sql.begin((tx) => record(tx, [recorded(changed, { n: 14 }, { organizationId, line: 'cus_4' })]))
  relay.wake()
  await until(() => expect(asked.mock.calls.length).toBeGreaterThan(3))
  expect((await jsm.streams.info(streamName)).state.last_seq).toBe(before)
  expect(warned.mock.calls.filter(([, text]) => text?.includes('fill level'))).toHaveLength(1)
  asked.mockRestore()
  warned.mockRestore()
  await untilAllIsPublished()
  expect((await jsm.streams.info(streamName)).state.last_seq).toBe(before + 1)
  await relay.stop()
})

test('what a stream lost that is shorter when the connection is back, though nothing was published meanwhile, is published again', async () => {
  const tasks: Array<() => void> = []
  const onReconnect = (task: () => void) => void tasks.push(task)
  const { request } = app.eventBus
  const lost = recorded(changed, { n: 5 }, { organizationId })
  let publishes = 0
  const counting: typeof request = (subject, body, headers, ...rest) => {
    if (headers.get('Nats-Msg-Id') === lost.id) publishes++
    return request(subject, body, headers, ...rest)
  }
  const relay = startRelay({ ...app, eventBus: { ...app.eventBus, onReconnect, request: counting } })
  await app.sql.begin((tx) => record(tx, [lost]))
  relay.wake()
  await until(async () => expect(await app.sql`select 1 from outbox where published_at is null`).toEqual([]))
  await app.sql`update relay_position set last_seq = last_seq + 1000`
  for (const task of tasks) task()
  const jsm = await app.nc.jetstreamManager()
  await until(async () => {
    const { state } = await jsm.streams.info(streamName)
    expect(await app.sql`select last_seq::int from relay_position`).toEqual([{ lastSeq: state.last_seq }])
    expect(publishes).toBeGreaterThan(1)
  })
  await relay.stop()
})

test('a poll opens no transaction while no event waits, and publishes one that nobody told the relay of', async () => {
  const jsm = await app.nc.jetstreamManager()
  const { state } = await jsm.streams.info(streamName)
  const relay = startRelay(app)
  await until(async () =>
    expect(
      await app.sql`select from pg_stat_activity where datname = current_database() and query like 'select from outbox %'`,
    ).toHaveLength(1),
  )
  await app.sql.begin((tx) => record(tx, [recorded(changed, { n: 6 }, { organizationId })]))
  await until(async () => expect((await jsm.streams.info(streamName)).state.last_seq).toBe(state.last_seq + 1))
  await relay.stop()
})

test('without a connection nothing is tried, so that nothing counts as failed, and what waits goes out once there is one, until it stops', async () => {
  const { eventBus } = app
  const request = vi.fn(eventBus.request)
  const isConnected = vi.fn(() => false)
  const relay = startRelay({ ...app, eventBus: { ...eventBus, request, isConnected } })
  await app.sql.begin((tx) => record(tx, [recorded(changed, { n: 15 }, { organizationId })]))
  relay.wake()
  // A second turn begins when the first has ended.
  await until(() => expect(isConnected.mock.calls.length).toBeGreaterThan(1))
  expect(request).not.toHaveBeenCalled()
  isConnected.mockReturnValue(true)
  relay.wake()
  await untilAllIsPublished()
  await relay.stop()
  const turns = isConnected.mock.calls.length
  relay.wake()
  // Longer than a turn waits under load.
  await sleep(50)
  expect(isConnected).toHaveBeenCalledTimes(turns)
})

test('an event that the stream refuses is not taken for published: it goes again until the stream takes it', async () => {
  const jsm = await app.nc.jetstreamManager()
  const { config, state } = await jsm.streams.info(streamName)
  const { request } = app.eventBus
  let tries = 0
  const counting: typeof request = (...asked) => {
    tries++
    return request(...asked)
  }
  await jsm.streams.update(streamName, { ...config, max_msg_size: 10 })
  const relay = startRelay({ ...app, eventBus: { ...app.eventBus, request: counting } })
  await app.sql.begin((tx) => record(tx, [recorded(changed, { n: 5 }, { organizationId })]))
  relay.wake()
  await until(() => expect(tries).toBeGreaterThan(1))
  await jsm.streams.update(streamName, config)
  await until(async () => expect((await jsm.streams.info(streamName)).state.last_seq).toBe(state.last_seq + 1))
  await relay.stop()
  expect(await app.sql`select 1 from outbox where published_at is null`).toEqual([])
})

test('the first event that is refused is seen as one more', async () => {
  const probes = { ...app.probes, metrics: new Registry() }
  const relay = startRelay({ ...app, probes })
  expect(await probes.metrics.metrics()).toContain('svc_outbox_events_total{outcome="refused"} 0')
  await relay.stop()
})

test('an event whose id no header can carry is set aside, and stops no other', async () => {
  const relay = startRelay(app)
  const ids = ['evt_with a\nline', 'evt_without']
  await app.sql.begin((tx) =>
    record(
      tx,
      ids.map((id) => recorded(changed, { n: 6 }, { organizationId, id })),
    ),
  )
  relay.wake()
  await untilAllIsPublished()
  await relay.stop()
  expect(await app.sql`select id, refused from outbox where refused is not null`).toEqual([
    { id: `${organizationId}:${ids[0]}`, refused: 'BAD_HEADER' },
  ])
})

test('an event that a server does not take since it takes less than it should waits until it takes enough', async () => {
  const { info } = app.eventBus.nc
  if (!info) throw new Error('a connection without a server')
  const { max_payload: enough } = info
  onTestFinished(() => void (info.max_payload = enough))
  info.max_payload = 250
  const relay = startRelay(app)
  onTestFinished(relay.stop)
  const warned = vi.spyOn(app.log, 'warn')
  const id = newId('evt')
  await app.sql.begin((tx) => record(tx, [recorded(changed, { n: 7 }, { organizationId, id })]))
  relay.wake()
  const err: unknown = expect.objectContaining({ code: 'MAX_PAYLOAD_EXCEEDED' })
  await until(() => expect(warned).toHaveBeenCalledWith(expect.objectContaining({ err }), 'relay'))
  info.max_payload = enough
  await until(async () => {
    const [row] = await app.sql`select published_at, refused from outbox where id = ${`${organizationId}:${id}`}`
    expect(row).toEqual({ publishedAt: expect.any(Date), refused: null })
  })
})

test.each([
  { stream: streamName, seq: 0, duplicate: true },
  {
    stream: streamName,
    seq: 0,
    error: { code: 409, err_code: 10_158, description: 'duplicate message id is in process' },
  },
])('an event whose id a server knows, and no place of it, is published without its id: %j', async (answer) => {
  const { request } = app.eventBus
  const tries: string[] = []
  const knowing: typeof request = async (subject, body, headers, ...rest) => {
    const id = headers.get('Nats-Msg-Id')
    if (body.length > 0) tries.push(id)
    const message = await request(subject, body, headers, ...rest)
    return id ? { ...message, data: Buffer.from(JSON.stringify(answer)) } : message
  }
  const event = recorded(changed, { n: 7 }, { organizationId })
  await app.sql.begin((tx) => record(tx, [event]))
  const relay = startRelay({ ...app, eventBus: { ...app.eventBus, request: knowing } })
  relay.wake()
  await until(() => expect(tries.length).toBeGreaterThan(1))
  await relay.stop()
  expect(await app.sql`select published_at is not null as is from outbox where id = ${event.id}`).toEqual([
    { is: true },
  ])
  expect(tries).toEqual([event.id, ''])
})

test('an event that comes without its id fails under the id that its headers say', async () => {
  const event = recorded(changed, { n: 8 }, { organizationId })
  await app.sql.begin((tx) => record(tx, [event]))
  const { request } = app.eventBus
  const withoutId: typeof request = (subject, body, headers, ...rest) => {
    headers.delete('Nats-Msg-Id')
    return request(subject, body, headers, ...rest)
  }
  const consuming = consumeBatches(app, consumers.webhooksFanOut.name, async (events) => {
    if (events.some(({ headers }) => headers.event === event.headers.event)) throw new Error('not now')
  })
  const relay = startRelay({ ...app, eventBus: { ...app.eventBus, request: withoutId } })
  await until(async () => expect(await app.sql`select event_id from dead_events`).toEqual([{ eventId: event.id }]))
  await relay.stop()
  await consuming.stop()
})

test('what was published of a line is recorded before the rest goes out to a stream that is slow', async () => {
  const { request } = app.eventBus
  const [first, second] = [1, 2].map((n) => recorded(changed, { n }, { organizationId, line: 'cus_slow' }))
  let before: object[] = []
  const slow: typeof request = async (subject, body, headers, ...rest) => {
    const id = headers.get('Nats-Msg-Id')
    if (id === first?.id) await sleep(2_100)
    if (id === second?.id)
      before = await app.sql`select id from outbox where id = ${first?.id ?? ''} and published_at is not null`
    return request(subject, body, headers, ...rest)
  }
  await app.sql.begin((tx) =>
    record(
      tx,
      [first, second].flatMap((one) => one ?? []),
    ),
  )
  const relay = startRelay({ ...app, eventBus: { ...app.eventBus, request: slow } })
  await untilAllIsPublished()
  await relay.stop()
  expect(before).toHaveLength(1)
})

test('what was committed just before a relay stops is published by it', async () => {
  const relay = startRelay(app)
  await app.sql.begin((tx) => record(tx, [recorded(changed, { n: 6 }, { organizationId })]))
  await untilAllIsPublished()
  await app.sql.begin((tx) => record(tx, [recorded(changed, { n: 7 }, { organizationId })]))
  await relay.stop()
  expect(await waiting()).toEqual([])
})

test('of events that are published together the newest place is remembered', async () => {
  const relay = startRelay(app)
  await app.sql.begin((tx) =>
    record(
      tx,
      // Two of a line follow each other: so the last one gets the place between them.
      ['cus_9', 'cus_9', undefined].map((line, n) => recorded(changed, { n }, { organizationId, line })),
    ),
  )
  await relay.stop()
  const { state } = await (await app.nc.jetstreamManager()).streams.info(streamName)
  expect(await app.sql`select last_seq::int, last_subject_seq::int from relay_position`).toEqual([
    { lastSeq: state.last_seq, lastSubjectSeq: state.last_seq },
  ])
})

test('a stream that is gone is made anew by a relay alone', async () => {
  const relay = startRelay(app)
  const emit = async (n: number) => {
    await app.sql.begin((tx) => record(tx, [recorded(changed, { n }, { organizationId })]))
    relay.wake()
    await untilAllIsPublished()
  }
  await emit(14)
  const jsm = await app.nc.jetstreamManager()
  await jsm.streams.delete(streamName)
  await emit(15)
  await relay.stop()
  expect((await jsm.streams.info(streamName)).state.messages).toBeGreaterThan(0)
})
