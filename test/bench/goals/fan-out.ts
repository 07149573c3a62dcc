import { busPlaceOf } from '@app/deploy/stack/stack-file.ts'
import type { Bench } from '../bench.ts'
import { allRoots, cpuNote } from '../burst.ts'
import { type Child, startChild } from '../child.ts'
import type { FigureName } from '../figures.ts'
import type { DeliveryLimit } from '../floors/delivery-limit.ts'
import type { QueuePeer } from '../floors/queue-peer.ts'
import type { PublishEvents } from '../load/publish-events.ts'
import type { Receiver } from '../load/receiver.ts'
import type { Peer } from '../options.ts'
import { cpuBetween, cpuMsOf } from '../processes.ts'
import { drain } from '../project/backlog.ts'
import { subscribe, type Subscription } from '../project/subscriptions.ts'
import { until } from '../project/until.ts'
import { alternate, compare, perSecondText } from '../rounds.ts'
import { addStatements, costsOfOne, spentBetween, type Statement } from '../statements.ts'
import type { Goal } from './goal.ts'
import { openLeast } from './least-delivery.ts'

/** About what is delivered in a second, so that a round takes about as long as was asked for. */
const deliveriesASecond = { whole: 5_000, quick: 500 }
const arriveTimeoutMs = 120_000

const figureOf: Record<Peer, FigureName> = {
  bullmq: 'fanOutBullmq',
  'pg-boss': 'fanOutPgBoss',
  'graphile-worker': 'fanOutGraphile',
}

/** Whoever turns so many events into deliveries; answers the moment at which the first was begun. */
type FanOut = (count: number, prefix: string) => Promise<{ startedAt: number }>

/** What deliveries of the project have cost, until nothing was left of them. */
interface Cost {
  requests: number
  cpuMs: Record<string, number>
  statements: Statement[]
}

/** Deliveries a second, enqueue included: from the first event to the last new arrival at the subscriber. */
export const measureFanOut: Goal = async (bench) => {
  const { options } = bench
  const receiver = startChild<Receiver>('load/receiver.ts')
  const limit = startChild<DeliveryLimit>('floors/delivery-limit.ts')
  const { url } = await receiver.ask('start', undefined)
  const project = await openProjectSide(bench, url)
  const least = await openLeast(bench, url)
  const peers = await openPeers(bench, url)
  try {
    const { [options.quick ? 'quick' : 'whole']: aSecond } = deliveriesASecond
    const costs: Cost[] = []
    const leastCosts: Omit<Cost, 'statements'>[] = []
    const measure = (fanOut: FanOut) => (seconds: number) => rateOf(receiver, fanOut, seconds * aSecond)
    const rates = await alternate<string, number>(options, {
      limit: async (seconds) => {
        await receiver.ask('record', { keep: false })
        return (await limit.ask('run', { receiverUrl: url, seconds, prefix: nextPrefix() })).perSecond
      },
      project: async (seconds) => {
        const { cost, result } = await costOf(
          bench,
          seconds * aSecond,
          { receiver, publisher: project.publisher },
          () => measure(project.fanOut)(seconds),
        )
        costs.push(cost)
        return result
      },
      least: async (seconds) => {
        const { cpuMs, result } = await least.cpuOf(() => measure(least.fanOut)(seconds))
        leastCosts.push({ requests: seconds * aSecond, cpuMs })
        return result
      },
      ...Object.fromEntries(
        peers.map(({ name, child }) => [name, measure((count, prefix) => child.ask('burst', { count, prefix }))]),
      ),
    })
    const against = (name: FigureName, by: string, of = 'project') =>
      compare(name, rates[of] ?? [], rates[by] ?? [], perSecondText)
    return {
      figures: [
        against('fanOutLimit', 'limit'),
        ...peers.map(({ name }) => against(figureOf[name], name)),
        against('fanOutLeast', 'limit', 'least'),
        ...(options.peers.includes('bullmq') ? [against('fanOutLeastBullmq', 'bullmq', 'least')] : []),
      ],
      notes: [
        ...notesOf(costs),
        cpuNote('  of the least that keeps the promise of a delivery', leastCosts, ({ cpuMs }) => cpuMs),
      ],
      details: { rates, costs, leastCosts },
    }
  } finally {
    await project.close()
    await Promise.all([receiver.stop(), limit.stop(), least.stop(), ...peers.map(({ child }) => child.stop())])
  }
}

async function costOf<T>(
  bench: Bench,
  requests: number,
  beside: { receiver: { pid: number }; publisher: { pid: number } },
  act: () => Promise<T>,
): Promise<{ cost: Cost; result: T }> {
  const project = await bench.project()
  const roots = { ...allRoots(project), receiver: [beside.receiver.pid], publisher: [beside.publisher.pid] }
  const [statementsBefore, before] = [await bench.statements(), cpuMsOf(roots)]
  const result = await act()
  await drain(project)
  const cpuMs = cpuBetween(before, cpuMsOf(roots))
  return { result, cost: { requests, cpuMs, statements: spentBetween(statementsBefore, await bench.statements()) } }
}

function notesOf(costs: Cost[]) {
  const statements = addStatements(costs.map((cost) => cost.statements))
  const count = costs.reduce((sum, { requests }) => sum + requests, 0)
  return [
    cpuNote('CPU of a delivery, the event’s fan-out included', costs, ({ cpuMs }) => cpuMs),
    ...costsOfOne('a delivery', statements, count),
  ]
}

let prefixes = 0
const nextPrefix = () => `bench-${++prefixes}`

export async function rateOf(receiver: Child<Receiver>, fanOut: FanOut, count: number) {
  await receiver.ask('record', { keep: false })
  const { startedAt } = await fanOut(count, nextPrefix())
  const haveArrived = async () => (await receiver.ask('count', undefined)).events >= count
  await until(`${count} deliveries have arrived`, haveArrived, arriveTimeoutMs)
  const { lastAt } = await receiver.ask('count', undefined)
  return count / ((lastAt - startedAt) / 1000)
}

/** A subscription for each number, so that no lane's ten at a time hold it back; each event has one subscriber, as a job has. */
export async function openProjectSide(bench: Bench, url: string) {
  const project = await bench.project()
  const { numbers } = await bench.fixture()
  const { organization_id: organizationId, ...stack } = project.stack()
  const bus = busPlaceOf(stack)
  const publisher = startChild<PublishEvents>('load/publish-events.ts')
  const subscriptions: Subscription[] = []
  for (const [n, { phoneNumberId }] of numbers.entries()) {
    const body = { url: `${url}/${n}`, events: ['message.sent'], phone_number_ids: [phoneNumberId] }
    subscriptions.push(await subscribe(project, body))
  }
  const phoneNumberIds = numbers.map(({ phoneNumberId }) => phoneNumberId)
  return {
    publisher,
    fanOut: (count: number, prefix: string) =>
      publisher.ask('burst', { bus, organizationId, phoneNumberIds, prefix, count }),
    async close() {
      for (const subscription of subscriptions) await subscription.delete()
      await publisher.stop()
    },
  }
}

async function openPeers({ options, floorServers }: Bench, receiverUrl: string) {
  const { postgresUrl, redisUrl } = await floorServers()
  const peers = options.peers.map((name) => ({ name, child: startChild<QueuePeer>(`floors/${name}.ts`) }))
  for (const { child } of peers) await child.ask('start', { receiverUrl, postgresUrl, redisUrl })
  return peers
}
