import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { natsServersIn } from '@app/deploy/nats/nats-servers.ts'
import { environmentOf } from '@app/deploy/new-secrets.ts'
import { findPrograms, versionOf } from '@app/deploy/servers/find-program.ts'
import { serviceNames } from '@app/deploy/stack/options.ts'
import { newSecrets } from '@app/deploy/stack/secrets.ts'
import { openDatabase } from '@app/shared/database/database.ts'
import { ownSession } from '@app/shared/database/own-session.ts'
import { afterAll, afterEach, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest'
import { newFolder, ofEach, type StartedStack, startStack } from '../../journeys/start-stack.ts'
import { onMachines, probePortOn } from '../machines/on-machines.ts'
import { stretchWires, type Wires } from '../machines/wires.ts'
import { seedsIn } from '../../nats-seeds.ts'
import { startPrivateServers } from '../../servers.ts'
import { until } from '../../until.ts'
import { live, type Lived } from '../load/live.ts'
import { settle } from '../load/settle.ts'
import type { Subscriber } from '../load/subscriber.ts'
import { tellFailed } from '../load/tell-failed.ts'
import { during } from '../nemesis/during.ts'

let folder: string
let servers: {
  urls: { DATABASE_URL: string; REDIS_URL: string; NATS_URL: string }
  seeds: Record<string, string>
  stop: () => Promise<unknown>
}
let wires: Wires | undefined
beforeAll(async () => {
  folder = newFolder()
  const { postgresUrl, redisUrl, stop } = await startPrivateServers(join(folder, 'servers'), ['postgres', 'redis'])
  const secrets = environmentOf(newSecrets())
  // As it is deployed: it gives up a host sooner than by itself.
  const nats = natsServersIn(folder, secrets)
  await nats.start('nats-1', 'single.conf')
  servers = {
    urls: { DATABASE_URL: postgresUrl, REDIS_URL: redisUrl, NATS_URL: await nats.urlOf('nats-1') },
    seeds: seedsIn(secrets),
    stop: () => Promise.all([stop(), nats.killAll()]),
  }
  wires = stretchWires(2, Object.values(servers.urls))
})
beforeEach(({ skip }) => skip(!wires, 'Only root may lose packets, with nft (apt-get install nftables).'))
afterEach(() => wires?.heal())
afterAll(async () => {
  wires?.close()
  await servers.stop()
  rmSync(folder, { recursive: true, force: true })
})

/** As a service on that machine opens it. */
function databaseFrom(machine: number) {
  const sql = openDatabase(wires?.urlFrom(machine, servers.urls.DATABASE_URL) ?? '', 'public')
  onTestFinished(() => sql.end({ timeout: 0 }))
  return sql
}

/** How long Postgres may believe in a host that is not there. */
const goneWithinMs = 30_000

test('locks of a host that is lost are free again within half a minute, also while it is being told something long', async () => {
  const [there, here] = [databaseFrom(1), databaseFrom(0)]
  // As housekeeping holds it.
  const session = ownSession(there)
  onTestFinished(() => session.end({ timeout: 0 }))
  await session`select pg_advisory_lock(1)`
  // As a relay that takes large events.
  const told = there
    .begin(async (tx) => {
      await tx`select pg_advisory_xact_lock(2)`
      await tx`select repeat('x', 1000000) from (select pg_sleep(0.5)) s, generate_series(1, 100)`
    })
    .catch((err: Error) => err)
  const held = async () => {
    const rows = await here<{ objid: number }[]>`select objid::int from pg_locks where locktype = 'advisory' order by 1`
    return rows.map(({ objid }) => objid)
  }
  await until(async () => expect(await held()).toEqual([1, 2]))
  // What it is told begins in a moment.
  await sleep(250)
  wires?.cutMachine(1)
  await until(async () => expect(await held()).toEqual([]), goneWithinMs)
  wires?.heal()
  expect(await told).toBeInstanceOf(Error)
})

test('sessions that are forgotten on the way are found lost together: whoever asks now and then waits once, and not for each', async () => {
  const sql = databaseFrom(0)
  await Promise.all(Array.from({ length: 10 }, () => sql`select pg_sleep(0.3)`))
  wires?.forget()
  const failed: number[] = []
  const endsAt = performance.now() + 40_000
  for (let n = 0; performance.now() < endsAt; n++) {
    await sql`select 1`.catch(() => failed.push(n))
    await sleep(500)
  }
  expect(failed.length).toBeGreaterThan(0)
  expect(failed.length).toBeLessThanOrEqual(2)
})

let stack: StartedStack | undefined
let subscriber: Subscriber | undefined
afterEach(async () => {
  await stack?.remove()
  stack = undefined
  subscriber?.close()
})

/** Two organizations at work on two machines, while packets of theirs get lost; answers what came of it. */
async function lived(harm: (wires: Wires, pidsOn: (machine: number) => number[]) => Promise<void>): Promise<Lived> {
  const net = wires
  if (!net) throw new Error('There is nothing to break.')
  const given = { ...servers.urls, ...servers.seeds, ...onMachines(folder, net.ways) }
  stack = await startStack(['--replicas', ofEach(2)], newFolder(), given)
  const { read } = stack
  const pidsOn = (machine: number) =>
    serviceNames.map((name) => {
      const port = probePortOn(given, name, machine)
      const { pid } = read().services[name]?.find(({ url }) => url.endsWith(`:${port}`)) ?? { pid: null }
      if (pid === null) throw new Error(`${name} does not run on machine ${machine}.`)
      return pid
    })
  const life = await live({ stack }, {}, async () => {
    await sleep(3_000)
    await harm(net, pidsOn)
    await sleep(3_000)
  })
  subscriber = life.subscriber
  tellFailed(life.scene.history)
  return life
}

const expectLawful = async ({ scene, people }: Lived) => expect(await settle(scene, people, 120_000)).toEqual([])

test('a machine that loses its power in the middle of its work, and comes back after 40 s: every law holds', async () => {
  const life = await lived((net, pidsOn) =>
    during(
      40_000,
      () => {
        net.cutMachine(1)
        for (const pid of pidsOn(1)) process.kill(pid, 'SIGKILL')
      },
      net.heal,
    ),
  )
  await expectLawful(life)
})

test('each server in turn hears nothing and says nothing for 25 s: every law holds', async () => {
  const life = await lived(async (net) => {
    for (const url of Object.values(servers.urls)) {
      await during(25_000, () => net.cutServer(url), net.heal)
      await sleep(5_000)
    }
  })
  await expectLawful(life)
})

test('a fifth of all packets gets lost for 20 s: every law holds', async () => {
  await expectLawful(await lived((net) => during(20_000, () => net.lose(20), net.heal)))
})

test('every connection is forgotten on the way: every law holds', async ({ skip }) => {
  const version = versionOf(findPrograms(['nats-server'])[0] ?? '')
  skip(Number(version.split('.')[1]) < 10, 'A nats-server before 2.10 does not find lost connections.')
  await expectLawful(
    await lived(async (net) => {
      net.forget()
      await sleep(25_000)
    }),
  )
})
