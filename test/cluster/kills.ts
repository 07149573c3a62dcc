import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import type { clusterNames } from '@app/deploy/nats/nats-servers.ts'
import { type Cluster, untilTrue } from './cluster.ts'

/** A process to be killed. */
export interface Target {
  what: string
  kill: () => Promise<void>
  /** Whether another one has taken its place and is ready. */
  isBack: () => Promise<boolean>
}

type NatsName = (typeof clusterNames)[number]

/** As long as a machine needs that starts anew, and longer than the others need to elect. */
const natsAwayMs = 8_000
const backWithinMs = 60_000

/** Kills it with -9; resolves when it is back, with the seconds that took. */
export async function killAndWait({ what, kill, isBack }: Target): Promise<number> {
  const killedAt = Date.now()
  await kill()
  await untilTrue(isBack, backWithinMs, `${what} is not back`)
  return (Date.now() - killedAt) / 1000
}

/** One of a service's instances; the first of the gateways is the one that the platform calls. */
export function instanceOf({ stack }: Cluster, service: string, index: number): Target {
  const now = () => stack.read().services[service]?.[index]
  const before = now()
  return {
    what: `${service} ${index + 1}`,
    kill: async () => kill9(before?.pid),
    isBack: async () => {
      const { pid, url } = now() ?? { pid: null, url: '' }
      return pid !== null && pid !== before?.pid && (await answers(`${url}/readyz`))
    },
  }
}

/** A server of which there is one. */
export function serverOf({ stack }: Cluster, name: 'postgres' | 'redis'): Target {
  const now = () => stack.read().servers[name]?.pid ?? null
  const before = now()
  return {
    what: name,
    kill: async () => kill9(before),
    isBack: async () => now() !== null && now() !== before,
  }
}

/**
 * The nats-server that leads the stream, if it is one of these, else the one that leads the cluster, else the first; it
 * stays away for a while.
 */
export async function natsServerOf({ nats }: Cluster, among: NatsName[]): Promise<Target & { name: NatsName }> {
  const leads = await leadersOf(await nats.monitorOf(among[0] ?? 'nats-1'))
  const name = among.find((each) => each === leads.stream) ?? among.find((each) => each === leads.meta) ?? among[0]
  if (!name) throw new Error('There is no server left to kill.')
  const consumers = leads.consumers.filter((leader) => leader === name).length
  const roles = [name === leads.stream && 'stream', name === leads.meta && 'metadata', `${consumers} consumers`]
  return {
    name,
    what: `${name} (${roles.filter(Boolean).join(', ')})`,
    async kill() {
      await nats.kill(name)
      await sleep(natsAwayMs)
      await nats.start(name, 'cluster.conf')
    },
    isBack: () => nats.isHealthy(name),
  }
}

const Leader = z.object({ leader: z.string().optional() }).optional()
const JetStream = z.object({
  meta_cluster: Leader,
  account_details: z.array(
    z.object({
      stream_detail: z
        .array(z.object({ cluster: Leader, consumer_detail: z.array(z.object({ cluster: Leader })).default([]) }))
        .default([]),
    }),
  ),
})

/** Who leads what, as one of the servers sees it. */
export async function leadersOf(monitorUrl: string) {
  const answer = await fetch(`${monitorUrl}/jsz?accounts=true&streams=true&consumers=true`)
  const { meta_cluster: meta, account_details: accounts } = JetStream.parse(await answer.json())
  const [stream] = accounts.flatMap((account) => account.stream_detail)
  return {
    meta: meta?.leader,
    stream: stream?.cluster?.leader,
    consumers: (stream?.consumer_detail ?? []).map(({ cluster }) => cluster?.leader),
  }
}

function kill9(pid: number | null | undefined) {
  if (!pid) throw new Error('It does not run.')
  process.kill(pid, 'SIGKILL')
}

const answers = (url: string) =>
  fetch(url).then(
    ({ ok }) => ok,
    () => false,
  )
