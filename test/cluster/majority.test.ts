import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { natsServersIn } from '@app/deploy/nats/nats-servers.ts'
import { environmentOf } from '@app/deploy/new-secrets.ts'
import { provisionAt } from '@app/deploy/provision.ts'
import { newSecrets } from '@app/deploy/stack/secrets.ts'
import { startServers } from './cluster.ts'
import { createNetwork } from './network.ts'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { connectBus, identityOf } from '@app/shared/bus/bus.ts'
import { createLog } from '@app/shared/service/log.ts'
import { stayWithMajority } from '@app/shared/events/majority.ts'

const folder = mkdtempSync(join(tmpdir(), 'majority-'))
const secrets = environmentOf(newSecrets())
const network = createNetwork()
const servers = natsServersIn(folder, secrets, network.routeOf)
let urls: string[]

beforeAll(async () => {
  urls = await startServers(servers)
  await provisionAt({ natsUrl: urls.join(','), natsSeed: secrets['NATS_SEED_DEPLOY'] }, 3)
}, 60_000)
afterAll(async () => {
  await servers.killAll()
  network.close()
  rmSync(folder, { recursive: true, force: true })
})

/** Connected with this server first. */
async function connected(name: 'gateway' | 'platform', server: string) {
  const seed = secrets[`NATS_SEED_${name.toUpperCase()}`]
  const [log, own] = [createLog(name, 'silent'), await servers.urlOf(server)]
  const inTurn = [own, ...urls.filter((url) => url !== own)]
  const bus = await connectBus(name, inTurn.join(), log, { nkeySeed: seed, noRandomize: true })
  onTestFinished(() => bus.nc.close())
  stayWithMajority(bus.nc, inTurn, identityOf(name, seed), log)
  return { ...bus, isAt: () => own.endsWith(bus.nc.getServer()) }
}

test('whoever is connected with a server that is cut off goes to one that has a majority; none is left where none has', async () => {
  const [gateway, platform] = [await connected('gateway', 'nats-1'), await connected('platform', 'nats-2')]
  network.cutOff('nats-1')
  await expect.poll(gateway.isAt, { timeout: 40_000 }).toBe(false)
  expect(platform.isAt()).toBe(true)
  network.heal()

  const before = gateway.nc.getServer()
  network.scatter()
  await sleep(15_000)
  expect([gateway.nc.getServer(), platform.isAt()]).toEqual([before, true])
  network.heal()
}, 120_000)
