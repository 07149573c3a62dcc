import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { headers } from 'nats'
import { afterAll, expect, test } from 'vitest'
import { provision } from '@app/shared/events/provision.ts'
import { streamName } from '@app/shared/events/stream.ts'
import { environmentOf } from '../new-secrets.ts'
import { provisionAt } from '../provision.ts'
import { nats } from '../servers/nats.ts'
import { withBus } from '../stack/bus.ts'
import { newSecrets } from '../stack/secrets.ts'
import { clusterNames, natsServersIn } from './nats-servers.ts'

const folder = mkdtempSync(join(tmpdir(), 'configuration-'))
const secrets = environmentOf(newSecrets())
const servers = natsServersIn(folder, secrets)

afterAll(async () => {
  await servers.killAll()
  rmSync(folder, { recursive: true, force: true })
})

const testHere = test.skipIf(nats.find('') === undefined)

testHere(
  'three servers, of which one comes late, keep each event three times, and go on without one of them',
  async () => {
    const [last, ...first] = clusterNames
    for (const name of first) await servers.start(name, 'cluster.conf')
    const urls = await Promise.all(clusterNames.map(servers.urlOf))
    const bus = { natsUrl: urls.join(','), natsSeed: secrets['NATS_SEED_DEPLOY'] }
    const early = () => withBus(bus, ({ nc }) => provision(nc, { replicas: 3 })).then(() => 'provisioned', String)
    // A newer one (2.15; 2.10 not yet) elects nobody before all three have been there once, and leaves us without an answer.
    await expect.poll(early, { timeout: 20_000 }).toMatch(/no suitable peers|TIMEOUT/)
    const provisioned = provisionAt(bus, 3)
    await servers.start(last, 'cluster.conf')
    await provisioned
    await withBus(bus, async ({ nc, request }) => {
      const jsm = await nc.jetstreamManager()
      const { config, cluster } = await jsm.streams.info(streamName)
      expect([config.num_replicas, cluster?.replicas?.length]).toEqual([3, 2])
      await provisionAt(bus)
      expect((await jsm.streams.info(streamName)).config.num_replicas).toBe(3)
      await servers.kill(cluster?.leader ?? '')
      const publish = () =>
        request('event.messaging.told', Buffer.from('{}'), headers(), 1_000).then(
          (answer) => answer.string(),
          (err: unknown) => String(err),
        )
      // While they elect.
      await provisionAt(bus, 3)
      await expect.poll(publish, { timeout: 20_000, interval: 200 }).toContain('"seq":')
    })
  },
  60_000,
)

testHere('one server takes its users from the same file', async () => {
  await servers.start('single', 'single.conf')
  await expect.poll(() => servers.isHealthy('single'), { timeout: 10_000 }).toBe(true)
  const url = await servers.urlOf('single')
  await provisionAt({ natsUrl: url, natsSeed: secrets['NATS_SEED_DEPLOY'] })
  await expect(provisionAt({ natsUrl: url })).rejects.toThrow('does not know us')
  await servers.kill('single')
})
