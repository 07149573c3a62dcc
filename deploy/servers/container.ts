import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { StartedTestContainer } from 'testcontainers'
import { portFor } from '../processes/ports.ts'
import type { Watcher } from '../processes/supervise.ts'
import type { Running, ServerName } from './kind.ts'

export interface ContainerPlan {
  name: ServerName
  image: string
  /** Inside the container. */
  port: number
  command: string[]
  env?: Record<string, string>
  /** Where in the container the data is that should outlive it. */
  dataFolder?: string
  urlAt: (host: string, port: number) => string
  check: (url: string) => Promise<void>
}

const startupTimeoutMs = 120_000
const lookEveryMs = 1_000

/** Whether a Docker daemon (or what speaks as one) answers. */
export async function hasDocker(): Promise<boolean> {
  // Loaded only here, because loading it takes longer than starting everything else.
  const { getContainerRuntimeClient } = await import('testcontainers')
  return getContainerRuntimeClient().then(
    () => true,
    () => false,
  )
}

/** A server in a container, with its data in the data folder. The container goes when this process does, even by a kill -9. */
export async function startContainer(dataDir: string, watcher: Watcher, plan: ContainerPlan): Promise<Running> {
  const { PrivateContainer } = await import('./private-container.ts')
  const port = await portFor(dataDir, plan.name)
  const source = join(dataDir, `${plan.name}-container`)
  mkdirSync(source, { recursive: true })
  const container = await new PrivateContainer(plan.image, source)
    .withCommand(plan.command)
    .withEnvironment(plan.env ?? {})
    .withExposedPorts({ container: plan.port, host: port })
    .withBindMounts(plan.dataFolder === undefined ? [] : [{ source, target: plan.dataFolder }])
    .withStartupTimeout(startupTimeoutMs)
    .start()
  const url = plan.urlAt(container.getHost(), port)
  await untilItAnswers(plan, url)
  const guard = keepRunning(container, plan, url, watcher)
  return {
    url,
    what: `${plan.image} in a container on port ${port}`,
    stop: async () => {
      await guard.stop()
      await container.stop({ timeout: 5_000 })
    },
  }
}

async function untilItAnswers({ image, check }: ContainerPlan, url: string) {
  const endsAt = performance.now() + startupTimeoutMs
  for (;;) {
    try {
      return await check(url)
    } catch (err) {
      if (performance.now() > endsAt) throw new Error(`The container of ${image} does not answer.`, { cause: err })
    }
    await sleep(100)
  }
}

/** Starts the container again when its server stops answering. */
function keepRunning(container: StartedTestContainer, plan: ContainerPlan, url: string, { onDeath }: Watcher) {
  const stopping = new AbortController()
  const answers = () =>
    plan.check(url).then(
      () => true,
      () => false,
    )
  async function watch() {
    while (!stopping.signal.aborted) {
      await sleep(lookEveryMs, undefined, { signal: stopping.signal }).catch(() => {})
      if (stopping.signal.aborted || (await answers())) continue
      onDeath?.(`the container of ${plan.image} does not answer; starting it again`)
      await container.restart({ timeout: 1_000 }).catch((err) => onDeath?.(`${plan.image}: ${err}`))
    }
  }
  const watching = watch()
  return {
    stop: () => {
      stopping.abort()
      return watching
    },
  }
}
