import { allRoots, burst, cpuNotes } from '../burst.ts'
import { startChild } from '../child.ts'
import type { List } from '../floors/list.ts'
import { writeRequests } from '../load/wrk.ts'
import { alternate, throughput, usualConnections } from '../rounds.ts'
import type { Goal } from './goal.ts'

/** A page of 25 messages, numbers in turn, against fastify and the same SELECT on the same rows. */
export const measureList: Goal = async (bench) => {
  const { options, folder } = bench
  const connections = usualConnections(options)
  const [project, { numbers }] = [await bench.project(), await bench.fixture()]
  const {
    base_url: baseUrl,
    api_key: key,
    postgres_url: postgresUrl,
    organization_id: organizationId,
  } = project.stack()
  const floor = startChild<List>('floors/list.ts')
  try {
    const { url } = await floor.ask('start', { postgresUrl, organizationId })
    const headers = { authorization: `Bearer ${key}` }
    const pages = numbers.map(
      ({ phoneNumberId }) => ({ method: 'GET', path: `/v1/${phoneNumberId}/messages?limit=25`, headers }) as const,
    )
    const toFloor = writeRequests(folder, 'list-floor', url, pages)
    const toProject = writeRequests(folder, 'list', new URL(baseUrl).origin, pages)
    const { postgres = [] } = project.roots().servers
    const loads = await alternate(options, {
      // Its Postgres is the project's.
      floor: (seconds) => burst(toFloor, connections, seconds, { fastify: [floor.pid], postgres }),
      project: (seconds) => burst(toProject, connections, seconds, allRoots(project)),
    })
    return {
      figures: [throughput('list', loads.project, loads.floor)],
      notes: cpuNotes('a list of 25 messages', loads),
      details: loads,
    }
  } finally {
    await floor.stop()
  }
}
