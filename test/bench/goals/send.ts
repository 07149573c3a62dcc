import { startChild } from '../child.ts'
import type { FigureName } from '../figures.ts'
import type { Monolith } from '../floors/monolith.ts'
import { cpuBetween, cpuMsOf, cpuMsOfEnded, type Roots, sumOf } from '../processes.ts'
import { type Load, load, type Requests, writeRequests } from '../load/wrk.ts'
import { median } from '../median.ts'
import { type Backlog, backlogOf, drain } from '../project/backlog.ts'
import { sendRequests } from '../project/send-requests.ts'
import type { Project } from '../project/project.ts'
import { alternate, compare, microsText, msText, throughput } from '../rounds.ts'
import type { Goal } from './goal.ts'

interface Burst extends Load {
  /** Milliseconds of CPU by process, while the load ran. */
  cpuMs: Record<string, number>
  /** The same until all was done that the burst began; absent for the floor, which has nothing left to do. */
  wholeCpuMs?: Record<string, number>
  backlog?: Backlog
}

/** Processes that belong to the outside world and not to the price of a send. */
const outside = ['simulator', 'generator']

/** Sends of the whole product, the dispatcher on, against one INSERT a request. */
export const measureSend: Goal = async (bench) => {
  const { options, folder } = bench
  const [project, { recipients }, floorServers] = [
    await bench.project(),
    await bench.fixture(),
    await bench.floorServers(),
  ]
  const monolith = startChild<Monolith>('floors/monolith.ts')
  try {
    const { postgresUrl, processes } = floorServers
    const { url } = await monolith.ask('start', { postgresUrl, appSecret: '' })
    const { base_url: baseUrl, api_key: key } = project.stack()
    const requestsTo = (origin: string, name: string, keyed = false) =>
      writeRequests(folder, name, origin, sendRequests(recipients, key, keyed))
    const toFloor = requestsTo(url, 'send-floor')
    const origin = new URL(baseUrl).origin
    const toProject = requestsTo(origin, 'send')
    const keyed = requestsTo(origin, 'send-keyed', true)

    const floorRoots = {
      monolith: [monolith.pid],
      postgres: processes.flatMap((server) => (server.name === 'postgres' ? (server.pid() ?? []) : [])),
    }
    const floor = (connections: number) => (seconds: number) => burst(toFloor, connections, seconds, floorRoots)
    const whole = (requests: Requests, connections: number) => (seconds: number) =>
      burstWhole(project, requests, connections, seconds)

    const at64 = await alternate(options, { floor: floor(64), project: whole(toProject, 64), keyed: whole(keyed, 64) })
    const at256 = await alternate(options, { floor: floor(256), project: whole(toProject, 256) })
    const at1 = await alternate(options, { floor: floor(1), project: whole(toProject, 1) })
    return {
      figures: [
        throughput('send64', at64.project, at64.floor),
        throughput('send256', at256.project, at256.floor),
        compare('send1', p50s(at1.project), p50s(at1.floor), msText),
        throughput('sendKeyed', at64.keyed, at64.floor),
        cpu('sendCpu', at64.project, at64.floor, ({ cpuMs }) => cpuMs),
        cpu('sendCpuWhole', at64.project, at64.floor, ({ cpuMs, wholeCpuMs }) => wholeCpuMs ?? cpuMs),
      ],
      notes: [
        sharesNote('CPU of a send, c=64', at64.project, ({ cpuMs }) => cpuMs),
        sharesNote('the same until it is at the platform', at64.project, ({ wholeCpuMs }) => wholeCpuMs ?? {}),
        sharesNote('the monolith’s', at64.floor, ({ cpuMs }) => cpuMs),
        backlogNote('c=64', at64.project),
        backlogNote('c=256', at256.project),
      ],
      details: { at64, at256, at1 },
    }
  } finally {
    await monolith.stop()
  }
}

async function burst(requests: Requests, connections: number, seconds: number, roots: Roots): Promise<Burst> {
  const cpuMs = () => ({ ...cpuMsOf(roots), generator: cpuMsOfEnded() })
  const before = cpuMs()
  const result = await load(requests, connections, seconds)
  return { ...result, cpuMs: cpuBetween(before, cpuMs()) }
}

/** The burst, and the time in which the project does what it has accepted. */
async function burstWhole(project: Project, requests: Requests, connections: number, seconds: number): Promise<Burst> {
  const { services, servers, simulator } = project.roots()
  const roots = { ...services, ...servers, ...simulator }
  const before = cpuMsOf(roots)
  const result = await burst(requests, connections, seconds, roots)
  const backlog = await backlogOf(project)
  await drain(project)
  return { ...result, backlog, wholeCpuMs: cpuBetween(before, cpuMsOf(roots)) }
}

const p50s = (bursts: Burst[]) => bursts.map(({ p50Ms }) => p50Ms)

type Cpu = (burst: Burst) => Record<string, number>

function microsASend(burst: Burst, cpuMs: Cpu) {
  const inside = Object.entries(cpuMs(burst)).filter(([name]) => !outside.includes(name))
  return (sumOf(Object.fromEntries(inside)) * 1000) / burst.requests
}

const cpu = (name: FigureName, of: Burst[], by: Burst[], cpuMs: Cpu) =>
  compare(name, microsOf(of, cpuMs), microsOf(by, cpuMs), microsText)

const microsOf = (bursts: Burst[], cpuMs: Cpu) => bursts.map((burst) => microsASend(burst, cpuMs))

/** `CPU of a send, c=64: gateway 41 + messaging 30 + … µs; beside it simulator 12, generator 9`. */
function sharesNote(title: string, bursts: Burst[], cpuMs: Cpu) {
  const names = Object.keys(bursts[0] ? cpuMs(bursts[0]) : {})
  const shareOf = (name: string) =>
    `${name} ${median(bursts.map((burst) => ((cpuMs(burst)[name] ?? 0) * 1000) / burst.requests)).toFixed(0)}`
  const apart = names.filter((name) => outside.includes(name)).map(shareOf)
  const ours = names.filter((name) => !outside.includes(name)).map(shareOf)
  return `${title}: ${ours.join(' + ')} µs; beside it ${apart.join(', ')}`
}

function backlogNote(title: string, bursts: Burst[]) {
  const most = median(bursts.map(({ backlog }) => backlog?.sends ?? 0))
  const accepted = median(bursts.map(({ requests }) => requests))
  return `backlog at the end of a send measurement, ${title}: ${most} of ${accepted} sends queued`
}
