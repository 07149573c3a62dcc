import { startChild } from '../child.ts'
import type { Hello } from '../floors/hello.ts'
import { load, writeRequests } from '../load/wrk.ts'
import { alternate, throughput } from '../rounds.ts'
import type { Goal } from './goal.ts'

const connections = 64

/** The cheapest authenticated endpoint against the cheapest endpoint there is. */
export const measureMe: Goal = async ({ options, folder, project }) => {
  const { base_url: baseUrl, api_key: key } = (await project()).stack()
  const floor = startChild<Hello>('floors/hello.ts')
  try {
    const { url } = await floor.ask('start', undefined)
    const hello = writeRequests(folder, 'hello', url, [{ method: 'GET', path: '/' }])
    const { origin, pathname } = new URL(baseUrl)
    const headers = { authorization: `Bearer ${key}` }
    const me = writeRequests(folder, 'me', origin, [{ method: 'GET', path: `${pathname}/me`, headers }])
    const loads = await alternate(options, {
      floor: (seconds) => load(hello, connections, seconds),
      project: (seconds) => load(me, connections, seconds),
    })
    return { figures: [throughput('me', loads.project, loads.floor)], details: loads }
  } finally {
    await floor.stop()
  }
}
