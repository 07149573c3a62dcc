import type { Bench } from '../bench.ts'
import { allRoots, type Burst, burst, compareCpu, cpuNote } from '../burst.ts'
import { startChild } from '../child.ts'
import type { Monolith } from '../floors/monolith.ts'
import { type Requests, writeRequests } from '../load/wrk.ts'
import { median } from '../median.ts'
import { cpuBetween, cpuMsOf } from '../processes.ts'
import { askedOf } from '../project/asked.ts'
import { type Backlog, backlogOf, drain } from '../project/backlog.ts'
import { sendRequests } from '../project/send-requests.ts'
import { costsOfBursts, spentBetween, type Statement } from '../statements.ts'
import { alternate, compare, msText, throughput } from '../rounds.ts'
import { floorRoots } from './floor-roots.ts'
import type { Goal } from './goal.ts'

interface Send extends Burst {
  /** CPU by process until all was done that the burst began; absent for the floor, which has nothing left to do. */
  wholeCpuMs?: Record<string, number>
  backlog?: Backlog
  /** Sends for which messaging asked directory. */
  asked?: number
  /** What the project's SQL cost until then, where it was watched. */
  statements?: Statement[]
}

/** Sends of the whole product, the dispatcher on, against one INSERT a request. */
export const measureSend: Goal = async (bench) => {
  const { options, folder } = bench
  const project = await bench.project()
  const { recipients } = await bench.fixture()
  const floorServers = await bench.floorServers()
  const monolith = startChild<Monolith>('floors/monolith.ts')
  try {
    const { url } = await monolith.ask('start', { postgresUrl: floorServers.postgresUrl, appSecret: '' })
    const { base_url: baseUrl, api_key: key } = project.stack()
    const { origin } = new URL(baseUrl)
    const toFloor = writeRequests(folder, 'send-floor', url, sendRequests(recipients, key, false))
    const toProject = writeRequests(folder, 'send', origin, sendRequests(recipients, key, false))
    const keyed = writeRequests(folder, 'send-keyed', origin, sendRequests(recipients, key, true))

    const roots = { monolith: [monolith.pid], ...floorRoots(floorServers, ['postgres']) }
    const floor =
      (connections: number) =>
      (seconds: number): Promise<Send> =>
        burst(toFloor, connections, seconds, roots)
    const whole = (requests: Requests, connections: number) => (seconds: number) =>
      burstWhole(bench, requests, connections, seconds)

    const at64 = await alternate(options, { floor: floor(64), project: whole(toProject, 64), keyed: whole(keyed, 64) })
    const at256 = await alternate(options, { floor: floor(256), project: whole(toProject, 256) })
    const at1 = await alternate(options, { floor: floor(1), project: whole(toProject, 1) })
    return {
      figures: [
        throughput('send64', at64.project, at64.floor),
        throughput('send256', at256.project, at256.floor),
        compare('send1', p50s(at1.project), p50s(at1.floor), msText),
        throughput('sendKeyed', at64.keyed, at64.floor),
        compareCpu('sendCpu', at64.project, at64.floor, ({ cpuMs }) => cpuMs),
        compareCpu('sendCpuWhole', at64.project, at64.floor, wholeCpu),
      ],
      notes: [
        cpuNote('CPU of a send, c=64', at64.project, ({ cpuMs }) => cpuMs),
        cpuNote('  the same until it is at the platform', at64.project, wholeCpu),
        cpuNote('  the monolith’s', at64.floor, ({ cpuMs }) => cpuMs),
        cpuNote('CPU of a send, one client', at1.project, wholeCpu),
        askedNote('c=64', at64.project),
        backlogNote('c=64', at64.project),
        backlogNote('c=256', at256.project),
        ...costsOfBursts('a send, c=64, until it is at the platform', at64.project),
      ],
      details: { at64, at256, at1 },
    }
  } finally {
    await monolith.stop()
  }
}

/** The burst, and the time in which the project does what it has accepted. */
async function burstWhole(bench: Bench, requests: Requests, connections: number, seconds: number): Promise<Send> {
  const project = await bench.project()
  const statementsBefore = await bench.statements()
  const roots = allRoots(project)
  const before = cpuMsOf(roots)
  const askedBefore = await askedOf(project)
  const result = await burst(requests, connections, seconds, roots)
  const asked = (await askedOf(project)) - askedBefore
  const backlog = await backlogOf(project)
  await drain(project)
  const wholeCpuMs = cpuBetween(before, cpuMsOf(roots))
  return { ...result, backlog, asked, wholeCpuMs, statements: spentBetween(statementsBefore, await bench.statements()) }
}

const wholeCpu = ({ cpuMs, wholeCpuMs }: Send) => wholeCpuMs ?? cpuMs

const p50s = (bursts: Burst[]) => bursts.map(({ p50Ms }) => p50Ms)

/** A send to somebody who was not written to in the last ten minutes asks. */
function askedNote(title: string, bursts: Send[]) {
  const share = median(bursts.map(({ requests, asked = 0 }) => asked / requests))
  return `sends for which directory was asked, ${title}: ${(100 * share).toFixed(0)} %`
}

function backlogNote(title: string, bursts: Send[]) {
  const most = median(bursts.map(({ backlog }) => backlog?.sends ?? 0))
  const accepted = median(bursts.map(({ requests }) => requests))
  return `backlog at the end of a send measurement, ${title}: ${most} of ${accepted} sends queued`
}
