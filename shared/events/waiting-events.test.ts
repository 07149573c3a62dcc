import { setTimeout as sleep } from 'node:timers/promises'
import { freezeFor } from '@app/test/freeze.ts'
import { testService, type TestService } from '@app/test/service.ts'
import { until } from '@app/test/until.ts'
import type { JsMsg } from 'nats'
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { consumeBatches } from './consume.ts'
import { consumers, provision } from './provision.ts'
import { streamName } from './stream.ts'
import { someEvent } from '../testing/some-event.ts'
import { createWaitingEvents } from './waiting-events.ts'

let app: TestService
beforeAll(async () => {
  app = await testService('webhooks')
  await provision(app.nc)
})
afterAll(() => app.close())

const { name } = consumers.webhooksFanOut
test('what waits while the database is away does not come again, and is handled once when it is back', async () => {
  const jsm = await app.nc.jetstreamManager()
  const infoOf = () => jsm.consumers.info(streamName, name)
  await jsm.consumers.update(streamName, name, { ack_wait: 2e9 })
  await Promise.all(
    Array.from({ length: 1_000 }, () => app.nc.jetstream().publish('event.test.happened', '{}', someEvent())),
  )
  let isAway = true
  let handled = 0
  const consuming = consumeBatches(app, name, (events) => {
    if (isAway) return Promise.reject(Object.assign(new Error('the database starts up'), { code: '57P03' }))
    handled += events.length
    return Promise.resolve()
  })
  onTestFinished(() => consuming.stop())
  await until(async () => expect((await infoOf()).num_ack_pending).toBe(1_000))
  // Half again the time for an ack.
  await sleep(3_000)
  expect((await infoOf()).num_redelivered).toBe(0)
  isAway = false
  await until(async () => expect((await infoOf()).num_ack_pending).toBe(0))
  await consuming.stop()
  expect(handled).toBe(1_000)
})

test('what came again all the same waits once', async () => {
  const jsm = await app.nc.jetstreamManager()
  const infoOf = () => jsm.consumers.info(streamName, name)
  await jsm.consumers.update(streamName, name, { ack_wait: 0.5e9 })
  const goOn = Promise.withResolvers<void>()
  let handled = 0
  const consuming = consumeBatches(app, name, async (events) => {
    await goOn.promise
    handled += events.length
  })
  await Promise.all(
    Array.from({ length: 600 }, () => app.nc.jetstream().publish('event.test.happened', '{}', someEvent())),
  )
  await until(async () => expect((await infoOf()).num_ack_pending).toBe(600))
  // As an instance that is frozen for longer than the time for an ack.
  freezeFor(1_000)
  await until(async () => expect((await infoOf()).num_redelivered).toBe(600))
  await sleep(500)
  goOn.resolve()
  await until(async () => expect((await infoOf()).num_ack_pending).toBe(0))
  await consuming.stop()
  // Those 256 that were in work are handled again, and no more than some others.
  expect(handled).toBeLessThan(600 + 500)
})

test('what an instance has in hand that dies goes to another one within ten seconds, also where the consumer was made by an earlier release', async () => {
  const jsm = await app.nc.jetstreamManager()
  await jsm.consumers.update(streamName, name, { ack_wait: 30e9 })
  await provision(app.nc)
  for (const { config } of await jsm.consumers.list(streamName).next()) expect(config.ack_wait).toBeLessThan(10e9)
  await jsm.consumers.update(streamName, name, { ack_wait: 0.5e9 })
  await app.nc.jetstream().publish('event.test.happened', '{}', someEvent())
  const source = await app.nc.jetstream().consumers.get(streamName, name)
  // As an instance that is killed before it has acked.
  const inHand = await source.next()
  const seen: string[] = []
  const consuming = consumeBatches(app, name, async (events) => void seen.push(...events.map(({ subject }) => subject)))
  await until(() => expect(seen).toEqual([inHand?.subject]))
  await consuming.stop()
})

test('of events in order the next ones wait some seconds for a lost ack, also where the consumer was made by an earlier release', async () => {
  const inOrder = consumers.webhooksInOrder.name
  const jsm = await app.nc.jetstreamManager()
  await jsm.consumers.update(streamName, inOrder, { ack_wait: 30e9 })
  await provision(app.nc)
  expect((await jsm.consumers.info(streamName, inOrder)).config.ack_wait).toBe(3e9)
  await jsm.consumers.update(streamName, inOrder, { ack_wait: 0.5e9 })
  for (let n = 0; n < 2; n++) await app.nc.jetstream().publish('event.platform.happened', String(n), someEvent())
  const source = await app.nc.jetstream().consumers.get(streamName, inOrder)
  // As an instance that is killed before it has acked.
  expect((await source.next())?.string()).toBe('0')
  const seen: string[] = []
  const consuming = consumeBatches(app, inOrder, async (events) => {
    // Longer than the time for an ack: without a word it would come again.
    if (seen.length === 0) await sleep(1_000)
    seen.push(...events.map(({ payload }) => Buffer.from(payload).toString()))
  })
  await until(async () => expect(seen).toEqual(['0', '1']))
  await consuming.stop()
})

test('what was handled is kept no more, and a consumer that begins again leaves no clock behind', async () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const working = vi.fn<() => void>()
  const waiting = createWaitingEvents()
  for (let begun = 0; begun < 2; begun++) waiting.keepAlive(3_000)
  waiting.add({ seq: 1, working } as unknown as JsMsg)
  await waiting.handleNext(1, () => Promise.resolve())
  vi.advanceTimersByTime(3_000)
  expect(working).not.toHaveBeenCalled()
  waiting.giveBack()
  expect(vi.getTimerCount()).toBe(0)
})
