import { createHmac } from 'node:crypto'
import { allRoots, burst, cpuNote, cpuNotes } from '../burst.ts'
import { startChild } from '../child.ts'
import type { Monolith } from '../floors/monolith.ts'
import { type RequestToSend, writeRequests } from '../load/wrk.ts'
import { drain } from '../project/backlog.ts'
import { holdCallbacks } from '../project/hold-callbacks.ts'
import { statusBodies } from '../project/statuses.ts'
import { alternate, throughput, usualConnections } from '../rounds.ts'
import { costsOfBursts, spentBetween } from '../statements.ts'
import { floorRoots } from './floor-roots.ts'
import type { Goal } from './goal.ts'

/** More than are taken in a second, so that none comes twice. */
export const callbacksASecond = { whole: 16_000, quick: 300 }

/**
 * Signed statuses of messages that were sent before, one a callback, against a signature check and one INSERT: with all that follows
 * from them meanwhile, and by themselves, while what follows waits.
 */
export const measureCallbacks: Goal = async (bench) => {
  const { options, folder } = bench
  const connections = usualConnections(options)
  const project = await bench.project()
  const { [options.quick ? 'quick' : 'whole']: aSecond } = callbacksASecond
  const { rounds, seconds: most } = options
  // Two sides, once more to be warm, and the floor's.
  const all = await statusBodies(project, await bench.fixture(), folder, aSecond * most * (2 * rounds + 3))
  const floorServers = await bench.floorServers()
  const monolith = startChild<Monolith>('floors/monolith.ts')
  try {
    const appSecret = project.appSecret()
    const floor = await monolith.ask('start', { postgresUrl: floorServers.postgresUrl, appSecret })
    const { origin } = new URL(project.stack().base_url)
    const write = (name: string, to: string, seconds: number) => {
      const requests = all.splice(0, aSecond * seconds).map((body) => signed(body, appSecret))
      return writeRequests(folder, name, to, requests)
    }
    const toFloor = write('callbacks-floor', floor.url, options.seconds)
    const toProject = (seconds: number) =>
      burst(write('callbacks', origin, seconds), connections, seconds, allRoots(project))
    const roots = { monolith: [monolith.pid], ...floorRoots(floorServers, ['postgres']) }
    const loads = await alternate(options, {
      floor: (seconds) => burst(toFloor, connections, seconds, roots),
      project: async (seconds) => {
        const before = await bench.statements()
        const result = await toProject(seconds)
        await drain(project)
        return { ...result, statements: spentBetween(before, await bench.statements()) }
      },
      held: async (seconds) => {
        const goOn = await holdCallbacks(project)
        const result = await toProject(seconds)
        await goOn()
        await drain(project)
        return result
      },
    })
    return {
      figures: [
        throughput('callbacks', loads.project, loads.floor),
        throughput('callbacksAccepted', loads.held, loads.floor),
      ],
      notes: [
        ...cpuNotes('an upstream callback', loads),
        cpuNote('  the same until it is accepted', loads.held, ({ cpuMs }) => cpuMs),
        ...costsOfBursts('a callback, until nothing is left to do', loads.project),
      ],
      details: loads,
    }
  } finally {
    await monolith.stop()
  }
}

export function signed(body: string, appSecret: string): RequestToSend {
  const signature = createHmac('sha256', appSecret).update(body).digest('hex')
  const headers = { 'content-type': 'application/json', 'x-hub-signature-256': `sha256=${signature}` }
  return { method: 'POST', path: '/upstream/callbacks', headers, body }
}
