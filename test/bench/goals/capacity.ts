import type { Bench } from '../bench.ts'
import { addCosts, type Cost, costOf } from '../capacity/cost.ts'
import { type Kind, kinds } from '../capacity/page.ts'
import { startChild } from '../child.ts'
import type { Receiver } from '../load/receiver.ts'
import { load, type Requests, writeRequests } from '../load/wrk.ts'
import { sendRequests } from '../project/send-requests.ts'
import { statusBodies } from '../project/statuses.ts'
import { callbacksASecond, signed } from './callbacks.ts'
import { openProjectSide, rateOf } from './fan-out.ts'
import type { Goal } from './goal.ts'

const connections = 64
const warmUpSeconds = 2
/** About what is delivered in a second. */
const deliveriesASecond = { whole: 4_000, quick: 500 }

/** Prepares one kind of operation for so long. What it gives does them, and answers how many. */
type Work = (seconds: number) => Promise<() => Promise<number>>

/**
 * What one of each operation costs until all that follows from it is done: CPU by process, and bytes on disks. It has no
 * row in the table of goals: `--capacity` writes it into docs/capacity.md.
 */
export const measureCapacity: Goal = async (bench) => {
  const { options } = bench
  const project = await bench.project()
  const receiver = startChild<Receiver>('load/receiver.ts')
  const works = await openWorks(bench, receiver)
  try {
    const costs = {} as Record<Kind, Cost>
    for (const kind of kinds) {
      const work = works.of[kind]
      if (!options.quick) await costOf(project, await work(warmUpSeconds))
      const rounds: Cost[] = []
      for (let round = 0; round < options.rounds; round++)
        rounds.push(await costOf(project, await work(options.seconds)))
      costs[kind] = addCosts(rounds)
    }
    return { figures: [], details: { costs, memory: { atRest: project.atRestMib, most: project.mostMib() } } }
  } finally {
    await works.close()
    await receiver.stop()
  }
}

async function openWorks(bench: Bench, receiver: ReturnType<typeof startChild<Receiver>>) {
  const { options, folder } = bench
  const [project, { numbers, recipients }] = [await bench.project(), await bench.fixture()]
  const { base_url: baseUrl, api_key: key } = project.stack()
  const { origin, pathname } = new URL(baseUrl)
  const headers = { authorization: `Bearer ${key}` }
  const get = (path: string) => ({ method: 'GET', path: `${pathname}${path}`, headers }) as const
  const pages = numbers.map(({ phoneNumberId }) => get(`/${phoneNumberId}/messages?limit=25`))
  const sends = writeRequests(folder, 'capacity-sends', origin, sendRequests(recipients, key, true))
  const lists = writeRequests(folder, 'capacity-lists', origin, pages)
  const me = writeRequests(folder, 'capacity-me', origin, [get('/me')])
  const size = options.quick ? 'quick' : 'whole'
  const [callbacks, deliveries] = [callbacksASecond[size], deliveriesASecond[size]]

  const loaded =
    (requests: Requests): Work =>
    async (seconds) =>
    async () =>
      (await load(requests, connections, seconds)).requests
  let statuses: string[] | undefined
  const callback: Work = async (seconds) => {
    const all = callbacks * (warmUpSeconds + options.rounds * options.seconds)
    statuses ??= await statusBodies(project, { numbers, recipients }, folder, all)
    const requests = statuses.splice(0, seconds * callbacks).map((body) => signed(body, project.appSecret()))
    return loaded(writeRequests(folder, 'capacity-callbacks', origin, requests))(seconds)
  }
  const { url } = await receiver.ask('start', undefined)
  let side: Awaited<ReturnType<typeof openProjectSide>> | undefined
  const delivery: Work = async (seconds) => {
    // Only now, so that nothing of what was measured before was delivered.
    const { fanOut } = (side ??= await openProjectSide(bench, url))
    return async () => {
      await rateOf(receiver, fanOut, seconds * deliveries)
      return seconds * deliveries
    }
  }
  const of: Record<Kind, Work> = { send: loaded(sends), callback, list: loaded(lists), me: loaded(me), delivery }
  return { of, close: async () => side?.close() }
}
