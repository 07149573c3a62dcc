import { allRoots, burst, cpuNotes } from '../burst.ts'
import { startChild } from '../child.ts'
import type { Hello } from '../floors/hello.ts'
import { writeRequests } from '../load/wrk.ts'
import { alternate, throughput, usualConnections } from '../rounds.ts'
import type { Goal } from './goal.ts'

/** The cheapest authenticated endpoint against the cheapest endpoint there is. */
export const measureMe: Goal = async (bench) => {
  const { options, folder } = bench
  const connections = usualConnections(options)
  const project = await bench.project()
  const { base_url: baseUrl, api_key: key } = project.stack()
  const floor = startChild<Hello>('floors/hello.ts')
  try {
    const { url } = await floor.ask('start', undefined)
    const hello = writeRequests(folder, 'hello', url, [{ method: 'GET', path: '/' }])
    const { origin, pathname } = new URL(baseUrl)
    const headers = { authorization: `Bearer ${key}` }
    const me = writeRequests(folder, 'me', origin, [{ method: 'GET', path: `${pathname}/me`, headers }])
    const loads = await alternate(options, {
      floor: (seconds) => burst(hello, connections, seconds, { fastify: [floor.pid] }),
      project: (seconds) => burst(me, connections, seconds, allRoots(project)),
    })
    return {
      figures: [throughput('me', loads.project, loads.floor)],
      notes: cpuNotes('a GET /me', loads),
      details: loads,
    }
  } finally {
    await floor.stop()
  }
}
