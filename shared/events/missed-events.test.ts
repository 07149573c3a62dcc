import { testService, type TestService } from '@app/test/service.ts'
import { until } from '@app/test/until.ts'
import { nanos } from 'nats'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { consumeBatches, type Consuming } from './consume.ts'
import { tellMissedEvents } from './missed-events.ts'
import { consumers, provision } from './provision.ts'
import { streamName } from './stream.ts'
import { someEvent } from '../testing/some-event.ts'

let app: TestService
beforeAll(async () => {
  app = await testService('webhooks')
  await provision(app.nc)
})
afterAll(() => app.close())

const { name } = consumers.webhooksFanOut
let seen = 0
const start = () => consumeBatches(app, name, async (events) => void (seen += events.length))
async function publish(count: number) {
  for (let n = 0; n < count; n++) await app.nc.jetstream().publish('event.test.happened', '{}', someEvent())
}

const missed = async () => {
  const line = (await app.probes.metrics.metrics()).split('\n').find((each) => each.startsWith('svc_consumer_missed'))
  return Number(line?.split(' ').at(-1))
}

/** Waits until all that is in the stream has left it by its age. */
async function ageAll() {
  const jsm = await app.nc.jetstreamManager()
  const { config } = await jsm.streams.info(streamName)
  await jsm.streams.update(streamName, { ...config, max_age: nanos(100), duplicate_window: nanos(100) })
  await until(async () => expect((await jsm.streams.info(streamName)).state.messages).toBe(0))
  await jsm.streams.update(streamName, config)
}

async function whileRunning(work: () => Promise<unknown>) {
  const consuming: Consuming = start()
  await work()
  await consuming.stop()
}

test('a consumer that comes back after events left the stream unhandled says how many', async () => {
  const errors = vi.spyOn(app.log, 'error')
  await publish(5)
  await whileRunning(() => until(() => expect(seen).toBe(5)))
  const jsm = await app.nc.jetstreamManager()
  // All of it was handled: that it grew old is nothing.
  await until(async () => expect((await jsm.consumers.info(streamName, name)).num_ack_pending).toBe(0))
  await ageAll()
  await whileRunning(async () => {
    await publish(1)
    await until(() => expect(seen).toBe(6))
  })
  expect(await missed()).toBe(0)
  await until(async () => expect((await jsm.consumers.info(streamName, name)).num_ack_pending).toBe(0))

  await publish(5)
  await ageAll()
  await publish(4)
  await whileRunning(() => until(() => expect(seen).toBe(6 + 4)))
  expect(await missed()).toBe(5)
  // What has left was perhaps not meant for one that gets some events alone.
  await tellMissedEvents(app, await jsm.consumers.info(streamName, consumers.messagingAccounts.name))
  expect(errors.mock.calls.map(([line]) => line)).toEqual([{ consumer: name, missed: 5 }])
})
