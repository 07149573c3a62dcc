import { once } from 'node:events'
import { connect } from 'node:net'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { gauge } from '../metrics/registered.ts'
import { type Probes, startProbes } from './probes.ts'

let probes: Probes
beforeAll(async () => {
  probes = await startProbes(0, '127.0.0.1')
})
afterAll(() => probes.close())

async function ask(path: string) {
  const response = await fetch(`${probes.url}${path}`)
  return [response.status, await response.text()]
}

test('a process is ready when every check passes, and says which do not', async () => {
  probes.addCheck('starting', () => true)
  expect(await ask('/readyz')).toEqual([200, 'ok\n'])
  probes.addCheck('nats', () => false)
  probes.addCheck('postgres', () => Promise.reject(new Error('away')))
  expect(await ask('/readyz')).toEqual([503, 'not ready: nats, postgres\n'])
})

test('a check that is excluded does not count, all others do', async () => {
  expect(await ask('/readyz?exclude=nats')).toEqual([503, 'not ready: postgres\n'])
  expect(await ask('/readyz?exclude=nats&exclude=postgres')).toEqual([200, 'ok\n'])
  expect(await ask('/readyz?exclude=nat&exclude')).toEqual([503, 'not ready: nats, postgres\n'])
  probes.addCheck('starting', () => false)
  expect(await ask('/readyz?exclude=nats&exclude=postgres')).toEqual([503, 'not ready: starting\n'])
})

test('what is excluded from a probe is not excluded from the metric', async () => {
  await ask('/readyz?exclude=nats&exclude=postgres&exclude=starting')
  expect((await ask('/metrics')).join()).toMatch(/^svc_ready 0$/m)
})

test('a check that says nothing has failed after two seconds, for the metrics too', async () => {
  const own = await startProbes(0, '127.0.0.1')
  onTestFinished(own.close)
  own.addCheck('postgres', () => new Promise(() => {}))
  const answers = await Promise.all(
    ['/readyz', '/metrics'].map(async (path) => (await fetch(`${own.url}${path}`)).text()),
  )
  expect(answers).toEqual(['not ready: postgres\n', expect.stringMatching(/^svc_ready 0$/m)])
})

test('it closes, although somebody has connected and says nothing', async () => {
  const own = await startProbes(0, '127.0.0.1')
  const socket = connect(Number(new URL(own.url).port), '127.0.0.1').on('error', () => {})
  onTestFinished(() => void socket.destroy())
  await once(socket, 'connect')
  await own.close()
})

test('a metric that cannot be read fails its scrape, not the process', async () => {
  gauge(probes.metrics, { name: 'svc_away', help: 'away' }, () => Promise.reject(new Error('away')))
  expect(await ask('/metrics')).toEqual([500, 'Error: away\n'])
  probes.metrics.removeSingleMetric('svc_away')
})

test('it lives whatever is asked, and knows no other path', async () => {
  expect(await ask('/livez?verbose')).toEqual([200, 'ok\n'])
  expect(await ask('//?exclude=%')).toEqual([404, 'not found\n'])
})
