import { startProxy } from '@app/test/faults/nemesis/proxy.ts'
import { startTestNats } from '@app/test/nats.ts'
import { until } from '@app/test/until.ts'
import type { NatsConnection } from 'nats'
import { pino } from 'pino'
import { expect, onTestFinished, test, vi } from 'vitest'
import { connectBus } from './bus.ts'

/** A clock that is 90 s ahead while the work runs, and right afterwards. */
async function ahead<T>(work: () => Promise<T>): Promise<T> {
  const { now } = Date
  const clock = vi.spyOn(Date, 'now').mockImplementation(() => now() + 90_000)
  try {
    return await work()
  } finally {
    clock.mockRestore()
  }
}

async function startBus() {
  const nats = await startTestNats()
  onTestFinished(nats.stop)
  const proxy = await startProxy(nats.url)
  onTestFinished(proxy.close)
  const { nc } = await ahead(() => connectBus('tester', proxy.url, pino({ level: 'silent' })))
  onTestFinished(() => nc.close())
  return { nc, proxy }
}

const told = (nc: NatsConnection) => {
  const types: string[] = []
  void (async () => {
    for await (const { type } of nc.status()) types.push(type)
  })()
  return types
}

test('a connection that is lost is made anew at once, though the clock was put back since it was made', async () => {
  const { nc, proxy } = await startBus()
  const types = told(nc)
  proxy.reset()
  await until(() => expect(types).toContain('reconnect'), 5_000)
})

test('a consumer of which nothing is heard is told of, though the clock was put back since it began', async () => {
  const { nc } = await startBus()
  const jsm = await nc.jetstreamManager()
  await jsm.streams.add({ name: 'TRIAL', subjects: ['trial'] })
  await jsm.consumers.add('TRIAL', { durable_name: 'trial' })
  const source = await nc.jetstream().consumers.get('TRIAL', 'trial')
  const messages = await ahead(async () => {
    const consuming = await source.consume({ expires: 1_000, callback: () => {} })
    await jsm.streams.delete('TRIAL')
    return consuming
  })
  onTestFinished(async () => void (await messages.close()))
  const types: string[] = []
  void (async () => {
    for await (const { type } of await messages.status()) types.push(type)
  })()
  await until(() => expect(types).toContain('heartbeats_missed'), 10_000)
})
