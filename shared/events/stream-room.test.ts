import { setTimeout as sleep } from 'node:timers/promises'
import { testService, type TestService } from '@app/test/service.ts'
import type { NatsConnection } from 'nats'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { consumeBatches, type Consuming } from './consume.ts'
import { event } from '../api/contract.ts'
import { record, recorded } from './events.ts'
import { newId } from '../values/ids.ts'
import { consumers, provision } from './provision.ts'
import { type Relay, startRelay } from './relay.ts'
import { watchStreamRoom } from './stream-room.ts'
import { streamName } from './stream.ts'

const happened = event({
  subject: 'event.messaging.messages-read',
  summary: 'Test',
  data: z.object({ n: z.int(), text: z.string() }),
})
const organizationId = newId('org')
const streamBytes = 8 * 1024 * 1024
const text = 'x'.repeat(1_500)
/** More than the stream holds, by a third of it. */
const many = 6_500

let it: TestService
let relay: Relay
const consuming: Consuming[] = []
beforeAll(async () => {
  it = await testService('messaging')
  await provision(it.nc, { maxBytes: streamBytes })
  relay = startRelay(it)
})
afterAll(async () => {
  await Promise.all(consuming.map((one) => one.stop()))
  await relay.stop()
  await it.close()
})

async function emit(from: number, to: number) {
  for (let n = from; n < to; n += 500) {
    const events = Array.from({ length: 500 }, (_, k) => recorded(happened, { n: n + k, text }, { organizationId }))
    await it.sql.begin((tx) => record(tx, events))
  }
  relay.wake()
}

function listen(consumer: string) {
  const seen = new Set<number>()
  consuming.push(
    consumeBatches(it, consumer, async (events) => {
      for (const { payload } of events) seen.add((JSON.parse(Buffer.from(payload).toString()) as { n: number }).n)
    }),
  )
  return seen
}

/** A busy machine takes ten times the three seconds of a quiet one. */
const timeout = 90_000
const until = (check: () => unknown) => vi.waitFor(check, { timeout, interval: 50 })
const waiting = async () => {
  const [row] = await it.sql<{ count: number }[]>`select count(*)::int from outbox where published_at is null`
  return row?.count ?? 0
}
/** As soon as nothing more is published: the last batch is recorded after the stream has it. */
async function stillWaiting() {
  for (let before = -1, now = await waiting(); ; [before, now] = [now, await waiting()]) {
    if (now === before) return now
    await sleep(500)
  }
}
const state = async () => (await (await it.nc.jetstreamManager()).streams.info(streamName)).state

test(
  'a full stream drops nothing that a consumer has not handled: the rest waits in the outbox until it has',
  { timeout },
  async () => {
    const quick = listen(consumers.webhooksFanOut.name)
    // directory-messages-read is away.
    await emit(0, many)
    await until(async () => expect((await state()).bytes).toBeGreaterThan(streamBytes * 0.9))
    await until(() => expect(quick.size).toBeGreaterThan(2_000))
    const held = await stillWaiting()
    expect(held).toBeGreaterThan(1_000)
    await sleep(2_500)
    expect([await waiting(), (await state()).first_seq]).toEqual([held, 1])
    const late = listen(consumers.directoryMessagesRead.name)
    await until(() => expect([late.size, quick.size]).toEqual([many, many]))
    expect((await state()).first_seq).toBeGreaterThan(1)
    await until(async () => expect(await waiting()).toBe(0))
  },
)

test('a full stream of which all is handled takes what comes', { timeout }, async () => {
  await emit(many, many + 3_000)
  await until(async () => expect(await waiting()).toBe(0))
})

/** What a full stream of the numbers 101 to 200 is held by, look by look, when a consumer that waits has handled all up to each of these. */
async function heldBy(name: string, ...handled: number[]) {
  let floor: number | undefined
  const nc = {
    jetstreamManager: async () => ({
      streams: {
        info: async () => ({ config: { max_bytes: 1_000 }, state: { bytes: 990, first_seq: 101, last_seq: 200 } }),
      },
      consumers: {
        list: () => ({
          next: async () => [{ name, num_pending: 0, num_ack_pending: 100, ack_floor: { stream_seq: floor } }],
        }),
      },
    }),
  }
  const eventBus = { ...it.eventBus, nc: nc as unknown as NatsConnection }
  const room = watchStreamRoom({ ...it, eventBus }, () => {})
  const found: (string | null)[] = []
  for (floor of handled) {
    room.filled(1_000)
    found.push(await room.heldBy())
  }
  return found
}

test('what one of our consumers was given and has not handled is not dropped either', async () => {
  const { name } = consumers.webhooksFanOut
  expect(await heldBy(name, 105, 150)).toEqual([name, null])
  expect(await heldBy('of-another-program', 105)).toEqual([null])
})

test('for a consumer whose next event may stand anywhere nothing waits, unless it stands still', async () => {
  const { name } = consumers.webhooksFanOut
  expect(await heldBy(name, 50, 50, 60)).toEqual([null, name, null])
})
