import { createHmac } from 'node:crypto'
import { allRoots, burst, cpuNotes } from '../burst.ts'
import { startChild } from '../child.ts'
import type { Monolith } from '../floors/monolith.ts'
import { type RequestToSend, writeRequests } from '../load/wrk.ts'
import { drain } from '../project/backlog.ts'
import { statusBodies } from '../project/statuses.ts'
import { alternate, throughput, usualConnections } from '../rounds.ts'
import { costsOfBursts, spentBetween } from '../statements.ts'
import { floorRoots } from './floor-roots.ts'
import type { Goal } from './goal.ts'

/** More than either side takes, so that a measurement repeats none; in a quick run those of the sends before it, over and over. */
const callbacksASecond = { whole: 16_000, quick: 300 }

/** Signed statuses of messages that were sent before, one a callback, against a signature check and one INSERT. */
export const measureCallbacks: Goal = async (bench) => {
  const { options, folder } = bench
  const connections = usualConnections(options)
  const project = await bench.project()
  const { [options.quick ? 'quick' : 'whole']: aSecond } = callbacksASecond
  const statuses = await statusBodies(project, await bench.fixture(), folder, aSecond * options.seconds)
  const floorServers = await bench.floorServers()
  const monolith = startChild<Monolith>('floors/monolith.ts')
  try {
    const appSecret = project.appSecret()
    const floor = await monolith.ask('start', { postgresUrl: floorServers.postgresUrl, appSecret })
    const { origin } = new URL(project.stack().base_url)
    let used = 0
    const next = (seconds: number) => {
      const count = Math.min(seconds * aSecond, statuses.length)
      // What was used up comes again, as the platform repeats itself.
      const some = Array.from({ length: count }, (_, n) => statuses[(used + n) % statuses.length] ?? '')
      used += count
      return some.map((body) => signed(body, appSecret))
    }
    const toFloor = writeRequests(folder, 'callbacks-floor', floor.url, next(options.seconds))
    const roots = { monolith: [monolith.pid], ...floorRoots(floorServers, ['postgres']) }
    const loads = await alternate(options, {
      floor: (seconds) => burst(toFloor, connections, seconds, roots),
      project: async (seconds) => {
        const requests = writeRequests(folder, 'callbacks', origin, next(seconds))
        const before = await bench.statements()
        const result = await burst(requests, connections, seconds, allRoots(project))
        await drain(project)
        return { ...result, statements: spentBetween(before, await bench.statements()) }
      },
    })
    return {
      figures: [throughput('callbacks', loads.project, loads.floor)],
      notes: [
        ...cpuNotes('an upstream callback', loads),
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
