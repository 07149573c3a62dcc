import { startProxy } from '@app/test/faults/nemesis/proxy.ts'
import { freePort } from '@app/test/free-port.ts'
import { startTestNats } from '@app/test/nats.ts'
import { until } from '@app/test/until.ts'
import { expect, onTestFinished, test } from 'vitest'
import { start } from './start.ts'

test('a service that waits for its first nats-server names it when it is asked whether it is ready', async () => {
  const nats = await startTestNats()
  onTestFinished(nats.stop)
  const proxy = await startProxy(nats.url)
  onTestFinished(proxy.close)
  proxy.refuse()
  const env = { NATS_URL: proxy.url, NATS_REPLICAS: 1, LOG_LEVEL: 'silent', PROBE_HOST: '127.0.0.1' }
  const port = await freePort()
  const starting = start('platform', { ...env, PROBE_PORT: port })
  const readiness = async () => (await fetch(`http://127.0.0.1:${port}/readyz`)).text()
  expect(await until(readiness)).toBe('not ready: starting, nats\n')

  proxy.heal()
  const { nc, probes } = await starting
  onTestFinished(() => Promise.all([nc.close(), probes.close()]).then(() => {}))
  expect(await readiness()).toBe('not ready: starting\n')
})
