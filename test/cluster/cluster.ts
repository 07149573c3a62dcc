import { rmSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { clusterNames, type NatsServers, natsServersIn } from '@app/deploy/nats/nats-servers.ts'
import { environmentOf } from '@app/deploy/new-secrets.ts'
import { newSecrets } from '@app/deploy/stack/secrets.ts'
import { newFolder, type StartedStack, startStack } from '../journeys/start-stack.ts'

export interface Cluster {
  stack: StartedStack
  nats: NatsServers
  remove: () => Promise<void>
}

const services = ['gateway', 'messaging', 'directory', 'platform', 'webhooks']
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
    await Promise.all(clusterNames.map((name) => nats.start(name, 'cluster.conf')))
    for (const name of clusterNames)
      await untilTrue(() => nats.isHealthy(name), readyWithinMs, `${name} is not healthy`)
    const urls = await Promise.all(clusterNames.map(nats.urlOf))
    const seeds = Object.entries(secrets).filter(([name]) => name.startsWith('NATS_SEED_'))
    const given = { ...Object.fromEntries(seeds), NATS_URL: urls.join(','), NATS_REPLICAS: '3' }
    const replicas = services.map((service) => `${service}=3`).join(',')
    const stack = await startStack(['--replicas', replicas], newFolder(), given)
    return { stack, nats, remove: () => stack.remove().then(remove) }
  } catch (err) {
    await remove()
    throw err
  }
}

/** Asks every 50 ms; rejects with the sentence when the time is up. */
export async function untilTrue(isTrue: () => boolean | Promise<boolean>, withinMs: number, sentence: string) {
  const endsAt = Date.now() + withinMs
  while (!(await isTrue())) {
    if (Date.now() > endsAt) throw new Error(`${sentence} after ${withinMs / 1000} s`)
    await sleep(50)
  }
}
