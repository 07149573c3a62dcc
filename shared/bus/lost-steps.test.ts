import { setTimeout as sleep } from 'node:timers/promises'
import { startBusStepProxy } from '@app/test/bus-step-proxy.ts'
import { type LossyFlow, loseEach, losses } from '@app/test/each-loss.ts'
import { startTestNats } from '@app/test/nats.ts'
import { busSteppedService } from '@app/test/service.ts'
import { until } from '@app/test/until.ts'
import { connect, type JetStreamManager } from 'nats'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { event, rpc } from '../api/contract.ts'
import { ask } from './ask.ts'
import { connectBus } from './bus.ts'
import { consumeBatches } from '../events/consume.ts'
import { record, recorded } from '../events/events.ts'
import { once } from '../idempotency/idempotency.ts'
import { newId } from '../values/ids.ts'
import { consumers, provision, restoreStream } from '../events/provision.ts'
import { type Relay, startRelay } from '../events/relay.ts'
import { serve } from './rpc.ts'
import { streamName } from '../events/stream.ts'
import { someEvent } from '../testing/some-event.ts'

const changed = event({ subject: 'event.platform.customer-changed', summary: 'Test', data: z.object({ n: z.int() }) })
const organizationId = newId('org')
const silent = pino({ level: 'silent' })

async function open() {
  const app = await busSteppedService('platform')
  const direct = await connect({ servers: app.natsUrl })
  const jsm = await direct.jetstreamManager()
  const isBack = () => app.isConnected() && app.eventBus.isConnected()
  const close = async () => {
    await direct.close()
    await app.close()
  }
  return { app, direct, jsm, isBack, close }
}

const upTo = (n: number) => Array.from({ length: n }, (_, index) => index + 1)

async function storedIn(jsm: JetStreamManager): Promise<number[]> {
  const { messages } = (await jsm.streams.info(streamName)).state
  const all = upTo(messages).map(async (seq) => jsm.streams.getMessage(streamName, { seq }))
  return (await Promise.all(all)).map((message) => message.json<{ n: number }>().n)
}

async function publishing(): Promise<LossyFlow> {
  const { app, direct, jsm, isBack, close } = await open()
  await restoreStream(direct, 1)
  const relay = startRelay(app)
  let n = 0
  return {
    steps: app.busSteps,
    isBack,
    async run() {
      await jsm.streams.delete(streamName)
      await restoreStream(direct, 1)
      const events = [++n, ++n].map((each) => recorded(changed, { n: each }, { organizationId, line: 'cus_1' }))
      await app.sql.begin((tx) => record(tx, events))
      relay.wake()
      await until(async () => expect(await storedIn(jsm)).toHaveLength(n))
      expect(await storedIn(jsm)).toEqual(upTo(n))
      await until(async () => expect(await app.sql`select 1 from outbox where published_at is null`).toEqual([]))
    },
    async close() {
      await relay.stop()
      await close()
    },
  }
}

async function consuming(): Promise<LossyFlow> {
  const { app, direct, jsm, isBack, close } = await open()
  const { name } = consumers.webhooksInOrder
  await provision(direct)
  await jsm.consumers.update(streamName, name, { ack_wait: 500e6 })
  let n = 0
  const seen: number[] = []
  return {
    steps: app.busSteps,
    isBack,
    close,
    async run() {
      const listener = consumeBatches(app, name, async (events) => {
        for (const { payload } of events) seen.push((JSON.parse(Buffer.from(payload).toString()) as { n: number }).n)
      })
      await direct.jetstream().publish(changed.subject, JSON.stringify({ n: ++n }), someEvent())
      await until(async () => expect((await jsm.consumers.info(streamName, name)).ack_floor.stream_seq).toBe(n))
      await listener.stop()
    },
    async check() {
      // Some twice, and none behind a later one.
      expect([...new Set(seen)]).toEqual(upTo(n))
      expect(seen).toEqual(seen.toSorted((a, b) => a - b))
    },
  }
}

const keep = rpc({
  subject: 'rpc.platform.keep',
  summary: 'Keep',
  body: z.object({ text: z.string() }),
  answer: z.object({ text: z.string(), n: z.int() }),
})
/** It is asked for meanwhile who has the question, and a repeat finds it under way. */
const keepMs = 1_200

async function asking(whose: 'asker' | 'service'): Promise<LossyFlow> {
  const { app, isBack, close } = await open()
  const askerSteps = await startBusStepProxy(app.natsUrl)
  const asker = await connectBus('asker', askerSteps.url, silent)
  const relay: Relay = { wake() {}, redrive: () => Promise.resolve(0), stop: () => Promise.resolve() }
  let [n, done] = [0, 0]
  const served = { ...app, relay, sealKeys: { current: 'k', byId: new Map() } }
  const serving = await serve(
    served,
    { keep },
    {
      keep: (_app, { body: { text } }, caller) =>
        once(served, keep, caller, async () => {
          await sleep(keepMs)
          return { text, n: ++done }
        }),
    },
  )
  await app.nc.flush()
  async function askOnce(text: string) {
    const header = { organization: organizationId, key: '', request: 'req', trace: '', params: {}, query: {} }
    const call = { ...header, remainingMs: 10_000, idempotency: { key: text, target: 'POST /keep' } }
    const body = Buffer.from(JSON.stringify({ text }))
    const reply = await ask({ ...asker, tracer: undefined }, keep, call, body)
    return Buffer.from(reply.body).toString()
  }
  return {
    steps: whose === 'asker' ? askerSteps : app.busSteps,
    isBack: () => isBack() && asker.isConnected(),
    async run() {
      const text = `key ${++n}`
      const answer = JSON.stringify({ data: { text, n }, request_id: 'req' })
      expect(await askOnce(text)).toBe(answer)
      await until(async () => expect(await askOnce(text)).toBe(answer))
    },
    async close() {
      await serving.stop()
      await asker.nc.close()
      askerSteps.close()
      await close()
    },
  }
}

/** Beside each other: they wait most of their time. */
const timeoutMs = 90_000

test.concurrent.each([
  { what: 'what is emitted is stored once and in order, in a stream that was just made anew', flow: publishing },
  { what: 'what is stored is handled in order, and acked', flow: consuming },
  { what: 'what has a key is done once and answered, if its asker loses a message', flow: () => asking('asker') },
  { what: 'what has a key is done once and answered, if its service loses one', flow: () => asking('service') },
])('each message lost once: $what', { timeout: timeoutMs }, async ({ flow }) => {
  await Promise.all(losses.map(async (loss) => loseEach(loss, await flow())))
})

test.concurrent('a connection that is lost while it is made is made again within seconds', async () => {
  const nats = await startTestNats()
  const verbs = ['INFO', 'CONNECT', 'PING', 'PONG', 'SUB']
  const cases = verbs.flatMap((verb) => losses.map((loss) => ({ verb, loss })))
  await Promise.all(
    cases.map(async ({ verb, loss }) => {
      const steps = await startBusStepProxy(nats.url)
      const bus = await connectBus('bus', steps.url, silent)
      const { lost } = steps.count((step) => step.verb === verb, { at: 1, loss })
      const startedAt = performance.now()
      await bus.nc.reconnect()
      await lost
      await until(async () => {
        await bus.nc.flush()
        expect(bus.isConnected()).toBe(true)
      })
      expect(performance.now() - startedAt, `${verb} ${loss}`).toBeLessThan(10_000)
      await bus.nc.close()
      steps.close()
    }),
  )
  await nats.stop()
})
