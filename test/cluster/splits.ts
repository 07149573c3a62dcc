import { setTimeout as sleep } from 'node:timers/promises'
import { clusterNames } from '@app/deploy/nats/nats-servers.ts'
import { during } from '../faults/nemesis/during.ts'
import { between, type Random } from '../faults/random.ts'
import { type Machines, untilTrue } from './cluster.ts'
import { leadersOf } from './kills.ts'
import type { Trouble } from './under-load.ts'

type NatsName = (typeof clusterNames)[number]

/** Longer than the others need to elect, and than a leader without a majority needs to step down. */
const cutMs = 20_000
const briefMs = 10_000
/** A 2.15 took 22 s. */
const levelWithinMs = 40_000

/** Who leads the stream. */
async function streamLeader({ nats }: Machines): Promise<NatsName> {
  const { stream } = await leadersOf(await nats.monitorOf('nats-1'))
  return (stream ?? 'nats-1') as NatsName
}

/** Who leads a consumer and not the stream, else another one than who leads that. */
async function consumerLeader({ nats }: Machines): Promise<NatsName> {
  const { stream, consumers } = await leadersOf(await nats.monitorOf('nats-1'))
  const others = clusterNames.filter((name) => name !== stream)
  return others.find((name) => consumers.includes(name)) ?? others[0] ?? 'nats-1'
}

/** A split of some seconds; it is over when all servers have caught up with each other. */
function split(machines: Machines, what: string, forMs: number, cut: () => void): Trouble {
  return { what, run: () => during(forMs, cut, machines.network.heal).then(() => levelAgain(machines)) }
}

/** Heals and comes again, 1 to 5 s each. */
function flap(machines: Machines, name: NatsName, random: Random): Trouble {
  const { network } = machines
  return {
    what: `${name} cut off again and again`,
    async run() {
      for (let n = 0; n < 4; n++) {
        await during(between(random, 1_000, 5_000), () => network.cutOff(name), network.heal)
        await sleep(between(random, 1_000, 5_000))
      }
      return levelAgain(machines)
    },
  }
}

/**
 * Resolves when each server says that it has what the others have, with the seconds that took. A 2.9 may never say so; it is then
 * restarted, as `docs/running.md` says (StreamCopyBehind).
 */
async function levelAgain({ nats }: Machines): Promise<number> {
  const healedAt = Date.now()
  const isBehind = async (name: NatsName) => !(await nats.isHealthy(name))
  const areLevel = async () => !(await Promise.all(clusterNames.map(isBehind))).includes(true)
  const restartOne = async (name: NatsName) => {
    console.warn(`${name} is restarted`)
    await nats.kill(name)
    await nats.start(name, 'cluster.conf')
    await untilTrue(areLevel, levelWithinMs, 'The servers are not level').catch(console.warn)
  }
  await untilTrue(areLevel, levelWithinMs, 'The servers are not level').catch(async (err: unknown) => {
    console.warn(err)
    for (const name of clusterNames) if (await isBehind(name)) await restartOne(name)
  })
  return (Date.now() - healedAt) / 1000
}

/** Every way in which the network between the machines breaks. */
export async function* splitsOf(machines: Machines, random: Random): AsyncGenerator<Trouble> {
  const { network } = machines
  const one = (what: string, forMs: number, cut: () => void) => split(machines, what, forMs, cut)
  const leader = await streamLeader(machines)
  yield one(`${leader}, which leads the stream, cut off`, cutMs, () => network.cutOff(leader))
  const second = await consumerLeader(machines)
  yield one(`${second}, which leads a consumer, cut off`, cutMs, () => network.cutOff(second))
  const third = clusterNames.find((name) => name !== leader && name !== second) ?? leader
  yield one(`${third} cut off, connections reset`, briefMs, () => network.refuse(third))
  yield flap(machines, await streamLeader(machines), random)
  const muted = await streamLeader(machines)
  yield one(`${muted} heard by nobody`, briefMs, () => network.mute(muted))
  yield one('slow routes', briefMs, () => network.slow(200))
  yield one('all three apart', briefMs, network.scatter)
  // The platform calls the gateway of the first.
  yield one('the second machine cut off whole', briefMs, () => network.cutOffMachine('nats-2'))
}
