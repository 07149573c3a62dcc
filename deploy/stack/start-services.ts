import { type Program, type Supervised, supervise, type Watcher } from '../processes/supervise.ts'
import { untilReady } from '../processes/until-ready.ts'
import type { Ending } from './ending.ts'
import { type Instance, instancesOf, type Setup } from './service-programs.ts'

/** All of them compile at once: on a quarter of a processor for more than a minute. */
const readyTimeoutMs = 240_000

export type RunningInstance = Instance & { process: Supervised }

/** Starts all instances. The gateways last, because what starts last is stopped first: then nobody asks the others any more. */
export async function startServices(setup: Setup, ending: Ending, watcher: Watcher): Promise<RunningInstance[]> {
  const instances = await instancesOf(setup)
  const { gateways = [], others = [] } = Object.groupBy(instances, ({ service }) =>
    service === 'gateway' ? 'gateways' : 'others',
  )
  const { dataDir } = setup.options
  const started = await ending.begin(() => superviseAll(dataDir, others, watcher))
  const startedLast = await ending.begin(() => superviseAll(dataDir, gateways, watcher))
  return [...started.running, ...startedLast.running]
}

/** Programs that start and stop together. */
async function superviseAll<T extends { program: Program }>(dataDir: string, some: T[], watcher: Watcher) {
  const start = async (one: T) => ({ ...one, process: await supervise(dataDir, one.program, watcher) })
  const running = await Promise.all(some.map(start))
  return { running, stop: () => Promise.all(running.map(({ process }) => process.stop())) }
}

/** Waits until every service says that it is ready, and the simulator answers. */
export async function untilAllReady(services: RunningInstance[], simulator: Supervised, simulatorUrl: string) {
  const isReady = async (url: string) => (await fetch(`${url}/readyz`)).ok
  // Whatever it answers there, it answers.
  const answers = async () => (await fetch(simulatorUrl)).status > 0
  await Promise.all([
    untilReady(simulator, answers, readyTimeoutMs),
    ...services.map(({ process, url }) => untilReady(process, () => isReady(url), readyTimeoutMs)),
  ])
}
