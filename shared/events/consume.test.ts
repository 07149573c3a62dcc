import { freezeFor } from '@app/test/freeze.ts'
import { testService, type TestService } from '@app/test/service.ts'
import { until } from '@app/test/until.ts'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { event } from '../api/contract.ts'
import { consume, consumeBatches } from './consume.ts'
import { consumers, provision } from './provision.ts'
import { streamName } from './stream.ts'
import { someEvent } from '../testing/some-event.ts'

let app: TestService
beforeAll(async () => {
  app = await testService('platform')
  await provision(app.nc)
})
afterAll(() => app.close())

test('what the stream had sent when a consumer was told to stop is given back at once', async () => {
  const { name, subject } = consumers.platformAccountReports
  const count = 20
  const seen = new Set<string>()
  const listen = () =>
    consumeBatches(app, name, async (events) => {
      for (const { payload } of events) seen.add(Buffer.from(payload).toString())
    })
  const first = listen()
  const { nc } = app
  const jsm = await nc.jetstreamManager()
  await until(async () => expect((await jsm.consumers.info(streamName, name)).num_waiting).toBe(1))
  for (let n = 0; n < count; n++) nc.publish(subject, String(n), someEvent())
  // They leave; what comes back is in the socket, unread, when it is stopped.
  await Promise.resolve()
  freezeFor(300)
  await first.stop()
  const second = listen()
  // All but one: a nats-server of 2.9 gives the first of them to the question that is over.
  await until(() => expect(seen.size).toBeGreaterThanOrEqual(count - 1), 5_000)
  await second.stop()
})

test("an event that only takes a number is nobody's work", async () => {
  const { name } = consumers.webhooksFanOut
  const subjects: string[] = []
  const js = app.nc.jetstream()
  await js.publish('event.messaging.gap')
  const { seq } = await js.publish('event.messaging.changed', '{}', someEvent())
  const consuming = consumeBatches(app, name, async (events) => {
    subjects.push(...events.map(({ subject }) => subject))
  })
  const jsm = await app.nc.jetstreamManager()
  await until(async () => expect((await jsm.consumers.info(streamName, name)).ack_floor.stream_seq).toBe(seq))
  await consuming.stop()
  expect(subjects).not.toContain('event.messaging.gap')
  expect(subjects).toContain('event.messaging.changed')
  expect(await app.sql`select from dead_events`).toEqual([])
})

test('an event is handled though the work after its commit fails, which is not done again', async () => {
  const { name, subject } = consumers.directoryTeams
  const jsm = await app.nc.jetstreamManager()
  const changed = event({ subject, summary: 'Test', data: z.object({ n: z.int() }) })
  const afterwards = vi.fn<() => Promise<unknown>>().mockRejectedValue(new Error('too late'))
  const consuming = consume(app, name, changed, async () => afterwards)
  const { seq } = await app.nc.jetstream().publish(subject, '{"n":1}', someEvent())
  await until(async () => expect((await jsm.consumers.info(streamName, name)).ack_floor.stream_seq).toBe(seq))
  await consuming.stop()
  expect(afterwards).toHaveBeenCalledOnce()
  expect(await app.sql`select from dead_events`).toEqual([])
})

test('a consumer whose stream is not there makes both, though nobody publishes', async () => {
  const { name } = consumers.directoryMembers
  const jsm = await app.nc.jetstreamManager()
  await jsm.streams.delete(streamName)
  const consuming = consumeBatches(app, name, () => Promise.resolve())
  await until(async () => expect((await jsm.consumers.info(streamName, name)).num_waiting).toBe(1))
  await consuming.stop()
})
