import { cpSync, globSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { isProgram } from '@app/test/servers.ts'
import { testService, type TestService } from '@app/test/service.ts'
import { until } from '@app/test/until.ts'
import type { Msg, NatsConnection } from 'nats'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { event } from '../api/contract.ts'
import { newId } from '../values/ids.ts'
import { type Consuming, consumeBatches } from './consume.ts'
import { record, recorded } from './events.ts'
import { hasNewest, useUpHandledNumbers } from './lost-tail.ts'
import { provision } from './provision.ts'
import { refillLostStream } from './refill.ts'
import { type Relay, startRelay } from './relay.ts'
import { streamName } from './stream.ts'
import { someEvent } from '../testing/some-event.ts'

const changed = event({ subject: 'event.messaging.changed', summary: 'Test', data: z.object({ n: z.number() }) })
const organizationId = newId('org')

let app: TestService
let relay: Relay | undefined
let consuming: Consuming | undefined
/** What the consumer was given. */
let heard: string[]
beforeEach(async () => {
  app = await testService('messaging')
  await provision(app.nc)
  heard = []
})
afterEach(async () => {
  await relay?.stop()
  await consuming?.stop()
  await app.close()
})

const listen = () => {
  consuming = consumeBatches(app, 'webhooks-fan-out', (events) => {
    heard.push(...events.map(({ payload }) => Buffer.from(payload).toString()))
    return Promise.resolve()
  })
}
const publishOurs = async (n: number) => {
  await app.sql.begin((tx) => record(tx, [recorded(changed, { n }, { organizationId })]))
  relay?.wake()
}
/** As another service does, which looks after its own. */
const publishOther = async (n: number) => {
  await app.nc.jetstream().publish('event.directory.changed', JSON.stringify({ n }), someEvent())
}
const heardAll = (...numbers: number[]) =>
  until(() => expect(heard).toEqual(expect.arrayContaining(numbers.map((n) => JSON.stringify({ n })))))

const streamFiles = () => globSync(join(app.nats.folder, '**/msgs'))[0] ?? ''
const saved = () => `${app.nats.folder}.saved`

async function whileDown(work: () => void) {
  await app.nats.process?.stop()
  work()
  app.nats.process?.start()
  // What is asked while the connection breaks is answered by nobody.
  await until(async () => void (await (await app.nc.jetstreamManager({ timeout: 500 })).streams.info(streamName)))
}

/** What has been stored until now is what the disk will have kept. */
const flush = () => whileDown(() => cpSync(streamFiles(), saved(), { recursive: true }))

/** The events since `flush` are gone; what the consumers have handled is remembered. */
const losePower = () =>
  whileDown(() => {
    const files = streamFiles()
    rmSync(files, { recursive: true })
    cpSync(saved(), files, { recursive: true })
  })

test.skipIf(!isProgram('nats'))(
  'a consumer that remembers more than the stream has is given what is published after that',
  { timeout: 60_000 },
  async () => {
    relay = startRelay(app)
    listen()
    await publishOurs(1)
    await heardAll(1)
    await flush()
    for (const n of [2, 3, 4]) await publishOther(n)
    await heardAll(2, 3, 4)
    // The server writes down what a consumer has handled some time later.
    await vi.waitUntil(async () => (await consumerInfo()).ack_floor.stream_seq === 4)
    await losePower()
    // A newer server (2.15; not 2.10) takes the consumer back with the stream.
    expect((await consumerInfo()).delivered.stream_seq).toBeOneOf([4, 1])
    await publishOurs(5)
    await heardAll(5)
    expect(await app.sql`select 1 from dead_events`).toEqual([])
  },
)

test.skipIf(!isProgram('nats'))(
  'our newest event is missed also where others have published under its number since',
  { timeout: 60_000 },
  async () => {
    relay = startRelay(app)
    await publishOurs(1)
    await until(async () => expect(await waiting()).toBe(0))
    await flush()
    await publishOurs(2)
    await until(async () => expect(await waiting()).toBe(0))
    await relay.stop()
    relay = undefined
    await losePower()
    for (const n of [3, 4, 5]) await publishOther(n)
    await refillLostStream(app)
    expect(await waiting()).toBe(2)
    await app.sql`update outbox set published_at = now()`
    // Once.
    await refillLostStream(app)
    expect(await waiting()).toBe(0)
  },
)

test.skipIf(!isProgram('nats'))(
  'where the stream turns away what takes a number, that is an error, and not tried without end',
  { timeout: 60_000 },
  async ({ skip }) => {
    listen()
    await publishOther(1)
    await heardAll(1)
    await flush()
    await publishOther(2)
    await heardAll(2)
    await vi.waitUntil(async () => (await consumerInfo()).ack_floor.stream_seq === 2)
    await consuming?.stop()
    await losePower()
    const { streams } = await app.nc.jetstreamManager()
    const { config, state } = await streams.info(streamName)
    skip((await consumerInfo()).delivered.stream_seq === state.last_seq, 'The server takes the consumer back.')
    await streams.update(streamName, { ...config, max_msg_size: 10 })
    const asked = useUpHandledNumbers(app).catch((err: unknown) => String(err))
    expect(await Promise.race([asked, sleep(3_000, 'still at it')])).toContain('message size exceeds')
    await streams.update(streamName, config)
    await useUpHandledNumbers(app)
    expect((await streams.info(streamName)).state.last_seq).toBe(2)
  },
)

test('the numbers up to the newest that a consumer of ours was given are used up, and no others', async () => {
  const standing = (name: string, given: number, handled: number) => ({
    name,
    delivered: { stream_seq: given },
    ack_floor: { stream_seq: handled },
  })
  const all = [standing('webhooks-fan-out', 5, 3), standing('of-another-program', 9, 9)]
  const nc = {
    jetstreamManager: async () => ({
      streams: { info: async () => ({ state: { last_seq: 2 } }) },
      consumers: { list: () => ({ next: async () => all }) },
    }),
  } as unknown as NatsConnection
  const used: string[] = []
  const request = async (subject: string) => {
    const seq = 2 + used.push(subject)
    return { data: Buffer.from(JSON.stringify({ stream: streamName, seq })) } as unknown as Msg
  }
  await useUpHandledNumbers({ ...app, eventBus: { ...app.eventBus, nc, request } })
  expect(used).toEqual(Array(3).fill('event.messaging.gap'))
})

test('while another instance publishes, a stream that does not say what it has last is asked again', async () => {
  relay = startRelay(app)
  await publishOurs(1)
  await until(async () => expect(await waiting()).toBe(0))
  await relay.stop()
  // As a cluster of nats-servers since 2.12, while an event of the subject is not yet on a majority of them.
  const answers = [
    { code: 400, err_code: 10_164, description: 'wrong last sequence' },
    { code: 503, err_code: 10_163, description: 'expected last sequence per subject temporarily unavailable' },
  ]
  const { request } = app.eventBus
  const busy: typeof request = async (subject, body, carrier, ...rest) => {
    const answer = await request(subject, body, carrier, ...rest)
    const error = carrier.has('Nats-Expected-Last-Subject-Sequence') ? answers.shift() : undefined
    return error ? { ...answer, data: Buffer.from(JSON.stringify({ error, stream: streamName, seq: 0 })) } : answer
  }
  const errors = vi.spyOn(app.log, 'error')
  relay = startRelay({ ...app, eventBus: { ...app.eventBus, request: busy } })
  await publishOurs(2)
  await until(async () => expect(await waiting()).toBe(0))
  expect(answers).toEqual([])
  expect(errors).not.toHaveBeenCalled()
  // Nothing was taken for lost meanwhile.
  expect((await (await app.nc.jetstreamManager()).streams.info(streamName)).state.last_seq).toBe(2)
})

test('a refusal that does not name the last number is no word that an event is missed', async () => {
  const error = { code: 503, err_code: 10_077, description: 'maximum bytes exceeded' }
  const { request } = app.eventBus
  const refusing: typeof request = async (...asked) => {
    const answer = await request(...asked)
    return { ...answer, data: Buffer.from(JSON.stringify({ error, stream: streamName, seq: 0 })) }
  }
  const asked = hasNewest(
    { ...app, eventBus: { ...app.eventBus, request: refusing } },
    { subject: changed.subject, seq: 1 },
  )
  await expect(asked).rejects.toThrow('The stream does not say what it has last: maximum bytes exceeded')
})

test('an event that the stream has dropped for its age is not missed', async () => {
  relay = startRelay(app)
  await publishOurs(1)
  await until(async () => expect(await waiting()).toBe(0))
  await publishOther(2)
  await (await app.nc.jetstreamManager()).streams.purge(streamName, { seq: 2 })
  await refillLostStream(app)
  expect(await waiting()).toBe(0)
})

test('our newest event is not missed while it is the last of its subject', async () => {
  for (const n of [1, 2]) await app.nc.jetstream().publish(changed.subject, JSON.stringify({ n }), someEvent())
  const asked = [1, 2, 3].map((seq) => hasNewest(app, { subject: changed.subject, seq }))
  expect(await Promise.all(asked)).toEqual([true, true, false])
})

test('an event whose number is that of another with which the stream begins is missed', async () => {
  await publishOther(1)
  expect(await hasNewest(app, { subject: changed.subject, seq: 1 })).toBe(false)
})

const consumerInfo = async () => (await app.nc.jetstreamManager()).consumers.info(streamName, 'webhooks-fan-out')
const waiting = async () => (await app.sql`select 1 from outbox where published_at is null`).length
