import { testService, type TestService } from '@app/test/service.ts'
import { untilSomebodyWaits } from '@app/test/lock-waits.ts'
import { until } from '@app/test/until.ts'
import type { JetStreamManager } from 'nats'
import { afterAll, afterEach, beforeAll, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { z } from 'zod'
import { event } from '../api/contract.ts'
import { newId } from '../values/ids.ts'
import { type Consuming, consumeBatches } from './consume.ts'
import { record, recorded } from './events.ts'
import { handledFloor, noteFloors } from './handled-floors.ts'
import { markRecorded } from './outbox-marks.ts'
import { consumers, consumersOf, managerOf, provision } from './provision.ts'
import { redrive, refillLostStream } from './refill.ts'
import { type Relay, startRelay } from './relay.ts'
import { emptyEvents } from '../testing/empty-events.ts'
import { interrupted } from '../testing/interrupted.ts'
import { streamName } from './stream.ts'

const sent = event({ subject: 'event.messaging.message-sent', summary: 'Test', data: z.object({ n: z.number() }) })
const organizationId = newId('org')
const fanOut = consumers.webhooksFanOut.name
/** Of which no other service asks what it has handled. */
const unaudited = consumers.directorySentMessages.name

let app: TestService
let jsm: JetStreamManager
let relay: Relay | undefined
let consuming: Consuming[]
/** What each consumer was given. */
let heard: Record<string, number[]>
beforeAll(async () => {
  app = await testService('messaging')
  jsm = await managerOf(app.nc)
})
afterAll(() => app.close())
beforeEach(async () => {
  await provision(app.nc)
  consuming = []
  heard = {}
})
afterEach(async () => {
  await stopRelay()
  await stopListening()
  await emptyEvents(app)
})

function listen(...names: string[]) {
  for (const name of names) {
    const own = (heard[name] ??= [])
    const take = consumeBatches(app, name, async (events) => {
      own.push(...events.map(({ payload }) => sent.data.parse(JSON.parse(Buffer.from(payload).toString())).n))
    })
    consuming.push(take)
  }
}
async function stopListening() {
  await Promise.all(consuming.map((one) => one.stop()))
  consuming = []
}
async function stopRelay() {
  await relay?.stop()
  relay = undefined
}
const keep = (...numbers: number[]) =>
  app.sql.begin((tx) =>
    record(
      tx,
      numbers.map((n) => recorded(sent, { n }, { organizationId })),
    ),
  )
const untilPublished = () => until(async () => expect(await waiting()).toEqual([]))
async function publish(...numbers: number[]) {
  await keep(...numbers)
  relay ??= startRelay(app)
  relay.wake()
  await untilPublished()
}
const waiting = async () => {
  const rows = await app.sql<{ n: number }[]>`
    select (convert_from(payload, 'UTF8')::json ->> 'n')::int as n from outbox where published_at is null order by seq
  `
  return rows.map(({ n }) => n)
}
const untilHeard = (name: string, ...numbers: number[]) => until(() => expect(heard[name]).toEqual(numbers))
/** Nothing waits for the consumer, nor is in its hands. */
const untilAcked = (...names: string[]) =>
  until(async () => {
    for (const name of names)
      expect(await jsm.consumers.info(streamName, name)).toMatchObject({ num_pending: 0, num_ack_pending: 0 })
  })
const sweep = () => noteFloors(app)(app.sql)
/** As minutes later: what was recorded by now is marked, and committed for sure. */
async function sweepLater() {
  await markRecorded(app.sql)
  await app.sql`update outbox_marks set at = at - interval '1 hour'`
  await sweep()
}
const floor = () => app.sql.begin((tx) => handledFloor(tx, 'messaging'))
const notes = () => app.sql`select from handled_floors where next_seq is not null`

/** All consumers of what messaging tells have handled these events, and that is known. */
async function handledAll(...numbers: number[]) {
  listen(fanOut, unaudited)
  await publish(...numbers)
  await untilAcked(...consumersOf('messaging').map(({ name }) => name))
  await sweepLater()
  await sweepLater()
  expect(await floor()).toBe(numbers.length)
}

test('a stream that was lost is filled with what a consumer has not handled, and not with what all have', async () => {
  await handledAll(1, 2, 3)
  await stopListening()
  listen(fanOut)
  await publish(4)
  await untilHeard(fanOut, 1, 2, 3, 4)
  await jsm.streams.delete(streamName)
  await until(async () => expect((await jsm.streams.info(streamName)).state.messages).toBe(1))
  await untilPublished()
  listen(unaudited)
  await untilHeard(unaudited, 1, 2, 3, 4)
})

test('a stream that has lost its newest events gets those that were not handled', async () => {
  await handledAll(1, 2)
  await publish(3)
  await stopRelay()
  await app.sql`update relay_position set last_seq = last_seq + 1`
  await refillLostStream(app)
  expect(await waiting()).toEqual([3])
})

test('while one consumer is behind, or has never been seen, nothing counts as handled by all', async () => {
  listen(fanOut)
  await publish(1, 2)
  await untilHeard(fanOut, 1, 2)
  await sweepLater()
  await sweepLater()
  await sweepLater()
  expect(await floor()).toBe(0)
  await app.sql`update relay_position set last_seq = last_seq + 1`
  await stopRelay()
  await refillLostStream(app)
  expect(await waiting()).toEqual([1, 2])
})

test('a consumer that is never idle has handled what stood in the stream when it was noted', async () => {
  await handledAll(1, 2)
  await publish(3, 4)
  await untilHeard(unaudited, 1, 2, 3, 4)
  await untilAcked(fanOut, unaudited)
  await sweepLater()
  await stopListening()
  await publish(5)
  await sweep()
  expect(await app.sql`select seq::int from handled_floors where consumer in ${app.sql([fanOut, unaudited])}`).toEqual([
    { seq: 4 },
    { seq: 4 },
  ])
  await sweepLater()
  await sweepLater()
  // One that has it not in hand yet.
  expect(await floor()).toBe(4)
})

test('what may still be committed, and what waits to be published, is not passed over', async () => {
  await handledAll(1, 2)
  await publish(3)
  await untilAcked(fanOut, unaudited)
  await markRecorded(app.sql)
  await sweep()
  await sweep()
  expect(await floor()).toBe(2)
  await stopRelay()
  await keep(4)
  await sweepLater()
  await sweepLater()
  expect(await floor()).toBe(3)
})

test('what is published while the stream is looked at is no loss, so that floors rise under load', async () => {
  await handledAll(1, 2)
  await publish(3)
  await untilAcked(fanOut, unaudited)
  await stopRelay()
  await sweepLater()
  const busy = interrupted(app, () => app.sql`update relay_position set last_seq = last_seq + 1`)
  await noteFloors(busy)(app.sql)
  expect(await floor()).toBe(3)
})

test('nothing is noted of a stream that has lost what its relay has not missed yet', async () => {
  await handledAll(1, 2)
  await publish(3)
  await untilAcked(fanOut, unaudited)
  await stopRelay()
  await sweepLater()
  for (const lost of ["stream_created = 'before'", 'last_seq = last_seq + 1']) {
    await app.sql.unsafe(`update relay_position set ${lost}`)
    await sweepLater()
    expect(await floor()).toBe(2)
  }
})

test('what was noted of a stream that was lost says nothing of the one that took its place', async () => {
  await handledAll(1, 2)
  await stopListening()
  await publish(3)
  await sweepLater()
  expect((await notes()).length).toBeGreaterThan(0)
  await stopRelay()
  await jsm.streams.delete(streamName)
  await refillLostStream(app)
  await provision(app.nc)
  expect(await waiting()).toEqual([3])
  // Nothing is in it for anybody.
  await sweep()
  expect(await floor()).toBe(2)
})

test('what an operator publishes again counts as handled only when it was handled again', async () => {
  await handledAll(1, 2)
  await stopRelay()
  await redrive(app, new Date(Date.now() - 3_600_000))
  expect(await floor()).toBe(0)
  await sweepLater()
  await sweepLater()
  expect(await floor()).toBe(0)
  await publish()
  await untilAcked(fanOut, unaudited)
  await sweepLater()
  await sweepLater()
  expect(await floor()).toBe(2)
})

test('a look waits for who makes events wait again', async () => {
  await handledAll(1, 2)
  await stopRelay()
  const redriven = app.sql.begin(async (tx) => {
    await tx`update handled_floors set seq = 0, next_seq = null, next_stream_seq = null`
    const looked = sweepLater()
    await until(async () => expect(await app.sql`select from pg_locks where not granted`).toHaveLength(1))
    await tx`update outbox set published_at = null`
    return { looked }
  })
  await (
    await redriven
  ).looked
  expect(await notes()).toEqual([])
  await sweep()
  expect(await floor()).toBe(0)
})

test('who makes events wait again waits for a look, so that what it notes is forgotten', async () => {
  await handledAll(1, 2)
  await stopRelay()
  let redriven: Promise<number> | undefined
  const busy = interrupted(app, async () => {
    redriven ??= redrive(app, new Date(0))
    await Promise.race([redriven, untilSomebodyWaits(app.sql)])
  })
  await noteFloors(busy)(app.sql)
  expect(await redriven).toBe(2)
  expect(await notes()).toEqual([])
})

test('while the stream cannot be seen a look is told of, and notes nothing', async () => {
  await handledAll(1)
  const warned = vi.spyOn(app.log, 'warn')
  onTestFinished(() => warned.mockRestore())
  await stopRelay()
  await stopListening()
  await jsm.streams.delete(streamName)
  expect(await sweep()).toBe(0)
  expect(warned).toHaveBeenCalledWith(
    { err: expect.objectContaining({ message: 'stream not found' }) },
    'what the consumers have acked cannot be seen now',
  )
  expect(await floor()).toBe(1)
})
