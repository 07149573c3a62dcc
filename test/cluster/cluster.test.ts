import { clusterNames } from '@app/deploy/nats/nats-servers.ts'
import { serviceNames } from '@app/deploy/stack/options.ts'
import { afterAll, beforeAll, test } from 'vitest'
import { between, randomOf } from '../faults/random.ts'
import { type Cluster, startCluster } from './cluster.ts'
import { instanceOf, killAndWait, natsServerOf, serverOf, type Target } from './kills.ts'
import { seed } from './seed.ts'
import { breakUnderLoad, type Trouble } from './under-load.ts'

let cluster: Cluster
beforeAll(async () => {
  cluster = await startCluster()
}, 180_000)
afterAll(() => cluster?.remove(), 60_000)

const killed = (target: Target): Trouble => ({ what: target.what, run: () => killAndWait(target) })

async function* kills(): AsyncGenerator<Trouble> {
  const random = randomOf(seed, 'targets')
  const left = [...clusterNames]
  while (left.length > 0) {
    const server = await natsServerOf(cluster, left)
    left.splice(left.indexOf(server.name), 1)
    yield killed(server)
  }
  for (const service of serviceNames) yield killed(instanceOf(cluster, service, between(random, 0, 2)))
  yield killed(serverOf(cluster, 'redis'))
  yield killed(serverOf(cluster, 'postgres'))
}

test('any process is killed with -9 under load: nothing lost, nothing twice, no error past a few tries', async () => {
  await breakUnderLoad(cluster, kills())
}, 1_200_000)
