import { startProxy } from '@app/test/faults/nemesis/proxy.ts'
import { startTestNats } from '@app/test/nats.ts'
import { until } from '@app/test/until.ts'
import { expect, test, vi } from 'vitest'
import { createLog } from '../service/log.ts'
import { connectBus } from './bus.ts'

test.concurrent('who waits for the first nats-server says for which and why, without a password, and has all of them afterwards', async ({
  onTestFinished,
}) => {
  const nats = await startTestNats()
  onTestFinished(nats.stop)
  const [first, second] = [await startProxy(nats.url), await startProxy(nats.url)]
  onTestFinished(() => [first, second].forEach(({ close }) => close()))
  for (const proxy of [first, second]) proxy.refuse()
  const log = createLog('tester', 'silent')
  const said = vi.spyOn(log, 'warn')
  const hosts = [first, second].map(({ url }) => new URL(url).host)
  const urls = hosts.map((host) => `nats://svc:hidden@${host}`)
  const connecting = connectBus('tester', urls.join(), log, { noRandomize: true })
  await until(() => expect(said).toHaveBeenCalled())
  const servers = `nats://${hosts[0]},nats://${hosts[1]}`
  expect(said.mock.calls).toEqual([[{ err: expect.any(Error), servers }, 'waiting for nats-server']])

  second.heal()
  const { nc } = await connecting
  onTestFinished(() => nc.close())
  expect(nc.getServer()).toBe(hosts[1])
  first.heal()
  second.refuse()
  await until(() => expect(nc.getServer()).toBe(hosts[0]))
})

test.concurrent(
  'who lost its nats-server says why it finds none again, once',
  { timeout: 30_000 },
  async ({ onTestFinished }) => {
    const nats = await startTestNats()
    onTestFinished(nats.stop)
    const proxy = await startProxy(nats.url)
    onTestFinished(proxy.close)
    const log = createLog('tester', 'silent')
    const said = vi.spyOn(log, 'warn')
    const { nc, isConnected } = await connectBus('tester', proxy.url, log)
    onTestFinished(() => nc.close())
    const waits = () => said.mock.calls.filter(([, message]) => message === 'waiting for nats-server')

    // Who is refused by a server that listens learns of it now while he connects, now afterwards: two reasons.
    proxy.close()
    await until(() => expect(waits()).toEqual([[{ err: expect.any(Error), servers: proxy.url }, expect.anything()]]))
    await new Promise((resolve) => setTimeout(resolve, 6_000))
    expect(waits()).toHaveLength(1)
    const again = await startProxy(nats.url, Number(new URL(proxy.url).port))
    onTestFinished(again.close)
    await until(() => expect(isConnected()).toBe(true))
  },
)
