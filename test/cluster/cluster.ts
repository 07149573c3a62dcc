import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { clusterNames, type NatsServers, natsServersIn } from '@app/deploy/nats/nats-servers.ts'
import { environmentOf } from '@app/deploy/new-secrets.ts'
import { newSecrets } from '@app/deploy/stack/secrets.ts'
import { newFolder, ofEach, type StartedStack, startStack } from '../journeys/start-stack.ts'
import { onMachines } from '../faults/machines/on-machines.ts'
import { seedsIn } from '../nats-seeds.ts'
import { startPrivateServers } from '../servers.ts'
import { createNetwork, type Network } from './network.ts'

export interface Cluster {
  stack: StartedStack
  nats: NatsServers
  remove: () => Promise<void>
}

export interface Machines extends Cluster {
  network: Network
  /** What the operator logs in with at nats-server. */
  natsSeed: string | undefined
}

const readyWithinMs = 30_000

/** Three nats-servers as `deploy/nats` configures them, each event on all three; three of each service, one Postgres, one Redis. */
export async function startCluster(): Promise<Cluster> {
  const folder = newFolder()
  const secrets = environmentOf(newSecrets())
  const nats = natsServersIn(folder, secrets)
  const remove = async () => {
    await nats.killAll()
    rmSync(folder, { recursive: true, force: true })
  }
  try {
    const stack = await startAll(nats, secrets, {})
    return { stack, nats, remove: () => stack.remove().then(remove) }
  } catch (err) {
    await remove()
    throw err
  }
}

/** The same on three machines, as far as the network goes, which can be cut between them. */
export async function startMachines(): Promise<Machines> {
  const folder = newFolder()
  const secrets = environmentOf(newSecrets())
  const network = createNetwork()
  const nats = natsServersIn(folder, secrets, network.routeOf)
  const servers = await startPrivateServers(join(folder, 'servers'), ['postgres', 'redis'])
  const remove = async () => {
    network.close()
    await nats.killAll()
    await servers.stop()
    rmSync(folder, { recursive: true, force: true })
  }
  try {
    const natsUrls = await Promise.all(clusterNames.map(nats.urlOf))
    const ways = await network.waysOf(natsUrls, [servers.postgresUrl, servers.redisUrl])
    const stack = await startAll(nats, secrets, {
      DATABASE_URL: servers.postgresUrl,
      REDIS_URL: servers.redisUrl,
      ...onMachines(folder, ways),
    })
    const natsSeed = secrets['NATS_SEED_DEPLOY']
    return { stack, nats, network, natsSeed, remove: () => stack.remove().then(remove) }
  } catch (err) {
    await remove()
    throw err
  }
}

/** Starts the three as a cluster; answers their addresses once all are healthy. */
export async function startServers(nats: NatsServers): Promise<string[]> {
  await Promise.all(clusterNames.map((name) => nats.start(name, 'cluster.conf')))
  for (const name of clusterNames) await untilTrue(() => nats.isHealthy(name), readyWithinMs, `${name} is not healthy`)
  return Promise.all(clusterNames.map(nats.urlOf))
}

async function startAll(nats: NatsServers, secrets: Record<string, string>, more: Record<string, string>) {
  const urls = await startServers(nats)
  const given = { ...seedsIn(secrets), NATS_URL: urls.join(','), NATS_REPLICAS: '3', ...more }
  return startStack(['--replicas', ofEach(3)], newFolder(), given)
}

/** Asks every 50 ms; rejects with the sentence when the time is up. */
export async function untilTrue(isTrue: () => boolean | Promise<boolean>, withinMs: number, sentence: string) {
  const endsAt = Date.now() + withinMs
  while (!(await isTrue())) {
    if (Date.now() > endsAt) throw new Error(`${sentence} after ${withinMs / 1000} s`)
    await sleep(50)
  }
}
