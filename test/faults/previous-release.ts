import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { readJson } from '@app/deploy/stack/json-file.ts'
import { keepSecrets } from '@app/deploy/stack/secrets.ts'
import { instancesOf } from '@app/deploy/stack/service-programs.ts'
import type { RunningInstance } from '@app/deploy/stack/start-services.ts'
import { supervise } from '@app/deploy/processes/supervise.ts'
import { untilReady } from '@app/deploy/processes/until-ready.ts'
import { z } from 'zod'
import { freePort } from '../free-port.ts'
import type { StartedStack } from '../journeys/start-stack.ts'

/** A checkout of the previous release in which `npm start` has been run once, so that its packages are there. */
export const previousRelease = process.env['UPGRADE_FROM']

const readyWithinMs = 60_000
const addresses = z.object({ postgres_url: z.string(), redis_url: z.string(), nats_url: z.string() })

export interface Beside {
  /** The stack, with the older gateway among its own. */
  stack: StartedStack
  running: Array<Omit<RunningInstance, 'program'>>
  stop: () => Promise<void>
}

/** One instance of each service of the release in `root`, beside those of a stack and at its servers. */
export async function startBeside(stack: StartedStack, root: string, dataDir: string): Promise<Beside> {
  const { base_url, simulator_url } = stack.read()
  const { postgres_url, redis_url, nats_url } = addresses.parse(readJson(join(stack.dataDir, 'stack.json')))
  const one = { gateway: 1, messaging: 1, directory: 1, platform: 1, webhooks: 1 }
  const instances = await instancesOf({
    options: { dataDir, port: await freePort(), replicas: one, natsReplicas: undefined, quiet: true },
    secrets: keepSecrets(stack.dataDir),
    servers: { postgresUrl: postgres_url, redisUrl: redis_url, natsUrl: nats_url, processes: [], stop: async () => {} },
    publicUrl: new URL(base_url).origin,
    simulatorUrl: simulator_url,
  })
  // What one has stored the others serve.
  const mediaDir = join(stack.dataDir, 'media')
  const inRoot = (path: string) => join(root, path)
  const running = await Promise.all(
    instances.map(async ({ program, ...instance }) => {
      const args = ['--import', inRoot('deploy/processes/leash.ts'), inRoot(`services/${instance.service}/main.ts`)]
      const command = inRoot('node_modules/node/bin/node')
      const env = { ...program.env, MEDIA_DIR: mediaDir }
      return { ...instance, process: await supervise(dataDir, { ...program, command, args, cwd: root, env }) }
    }),
  )
  for (const { url, process } of running) {
    await untilReady(process, async () => (await fetch(`${url}/readyz`)).ok, readyWithinMs)
  }
  const gateway = running.find(({ service }) => service === 'gateway')
  const read = () => {
    const now = stack.read()
    const gateways = [...(now.services['gateway'] ?? []), { pid: null, url: '', public_url: gateway?.publicUrl }]
    return { ...now, services: { ...now.services, gateway: gateways } }
  }
  return {
    stack: { ...stack, read },
    running,
    stop: async () => void (await Promise.all(running.map(({ process }) => process.stop()))),
  }
}

/** Kills the instance of a service, and gives the one that is started in its place some seconds to live. */
export async function killBeside({ running }: Beside, service: string) {
  const pid = running.find((one) => one.service === service)?.process.pid()
  if (pid !== undefined) process.kill(pid, 'SIGKILL')
  await sleep(3_000)
}
