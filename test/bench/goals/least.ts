import { type Burst, burst, compareCpu, cpuNote } from '../burst.ts'
import { type Child, startChild } from '../child.ts'
import type { Least } from '../floors/least.ts'
import type { Monolith } from '../floors/monolith.ts'
import { type Requests, writeRequests } from '../load/wrk.ts'
import { cpuBetween, cpuMsOf, type Roots } from '../processes.ts'
import { sendRequests } from '../project/send-requests.ts'
import { until } from '../project/until.ts'
import { alternate, compare, msText, throughput } from '../rounds.ts'
import { floorRoots } from './floor-roots.ts'
import type { Goal } from './goal.ts'

const drainTimeoutMs = 60_000

/** What the promise of a send costs by itself, without all else that the project does, against one INSERT a request. */
export const measureLeast: Goal = async (bench) => {
  const { options, folder } = bench
  const project = await bench.project()
  const { numbers, recipients } = await bench.fixture()
  const floorServers = await bench.floorServers()
  const { postgresUrl, natsUrl } = floorServers
  const monolith = startChild<Monolith>('floors/monolith.ts')
  const least = startChild<Least>('floors/least.ts')
  try {
    const floor = await monolith.ask('start', { postgresUrl, appSecret: '' })
    const { simulator_url: simulatorUrl } = project.stack()
    const tokens = Object.fromEntries(numbers.map(({ phoneNumberId, accessToken }) => [phoneNumberId, accessToken]))
    const keeper = await least.ask('start', { postgresUrl, natsUrl, simulatorUrl, tokens })
    const toFloor = writeRequests(folder, 'least-floor', floor.url, sendRequests(recipients, '', false))
    const toLeast = writeRequests(folder, 'least', keeper.url, sendRequests(recipients, '', false))
    const { simulator } = project.roots()
    const roots = {
      floor: { monolith: [monolith.pid], ...floorRoots(floorServers, ['postgres']) },
      least: { least: [least.pid], ...floorRoots(floorServers, ['postgres', 'nats']), ...simulator },
    }
    const at = (connections: number) =>
      alternate(options, {
        floor: (seconds) => burst(toFloor, connections, seconds, roots.floor),
        least: (seconds) => burstWhole(least, toLeast, connections, seconds, roots.least),
      })
    const at64 = await at(64)
    const at256 = await at(256)
    const at1 = await at(1)
    return {
      figures: [
        throughput('least64', at64.least, at64.floor),
        throughput('least256', at256.least, at256.floor),
        compare('least1', p50s(at1.least), p50s(at1.floor), msText),
        compareCpu('leastCpu', at64.least, at64.floor, ({ cpuMs }) => cpuMs),
      ],
      notes: [cpuNote('CPU of the least that keeps the promise, c=64', at64.least, ({ cpuMs }) => cpuMs)],
      details: { at64, at256, at1 },
    }
  } finally {
    await Promise.all([monolith.stop(), least.stop()])
  }
}

/** The burst, with the CPU of all that followed from it. */
async function burstWhole(child: Child<Least>, requests: Requests, connections: number, seconds: number, roots: Roots) {
  const before = cpuMsOf(roots)
  const result = await burst(requests, connections, seconds, roots)
  const isDone = async () => (await child.ask('open', undefined)) === 0
  await until('all was sent', isDone, drainTimeoutMs, 20)
  return { ...result, cpuMs: cpuBetween(before, cpuMsOf(roots)) }
}

const p50s = (bursts: Burst[]) => bursts.map(({ p50Ms }) => p50Ms)
