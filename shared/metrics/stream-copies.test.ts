import type { NatsConnection } from 'nats'
import { Registry } from 'prom-client'
import { expect, test } from 'vitest'
import { readStreamCopies } from './stream-copies.ts'

/** The gauge, when the leader tells this of the others. */
async function readOf(cluster: object | undefined, isConnected = true) {
  const metrics = new Registry()
  const jetstreamManager = () => Promise.resolve({ streams: { info: () => Promise.resolve({ cluster }) } })
  const eventBus = { nc: { jetstreamManager } as unknown as NatsConnection, isConnected: () => isConnected }
  readStreamCopies({ eventBus, probes: { metrics } } as unknown as Parameters<typeof readStreamCopies>[0])
  return /^svc_stream_copies_behind (.*)$/m.exec(await metrics.metrics())?.[1]
}

const [level, behind, away] = [{ current: true }, { current: false }, { current: true, offline: true }]

test.each([
  [undefined, '0'],
  [{}, '0'],
  [{ replicas: [level, level] }, '0'],
  [{ replicas: [level, behind] }, '1'],
  [{ replicas: [behind, away] }, '2'],
])('copies that are away or behind are counted: %j', async (cluster, count) => {
  expect(await readOf(cluster)).toBe(count)
})

test('without a connection nothing is told', async () => {
  expect(await readOf({ replicas: [level] }, false)).toBeUndefined()
})
