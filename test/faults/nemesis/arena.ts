import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Supervised } from '@app/deploy/processes/supervise.ts'
import type { ServerName } from '@app/deploy/servers/kind.ts'
import { newFolder, type StartedStack, startStack } from '../../journeys/start-stack.ts'
import { onMachines } from '../machines/on-machines.ts'
import { stretchWires, type Wires } from '../machines/wires.ts'
import { startPrivateServers } from '../../servers.ts'
import { type Clocks, makeClocks } from './clocks.ts'
import { offerPostgresClock, type PostgresClock } from './postgres-clock.ts'
import { type Proxy, startProxy } from './proxy.ts'

/** A stack whose servers are ours to break, and stand behind proxies that are. */
export interface Arena {
  folder: string
  stack: StartedStack
  servers: Record<ServerName, { process: Supervised; url: string; proxy: Proxy }>
  /** Where nats-server keeps its streams. */
  streamsFolder: string
  /** Those of the services. */
  clocks: Clocks
  /** Undefined where libfaketime is not installed. */
  postgresClock: PostgresClock | undefined
  /** Those from two machines of services to the proxies; undefined where they were not asked for, or we may not lose packets. */
  wires: Wires | undefined
  stop: () => Promise<void>
  remove: () => Promise<void>
}

interface Wishes {
  /** Makes the folder of the servers ready for them, and answers what undoes that when they have stopped. */
  prepare?: (serversFolder: string) => () => unknown
  /** One arena of this host at a time may. */
  losesPackets?: boolean
}

/** Undefined where the servers run in containers: what is no process of this machine is not ours to kill. */
export async function openArena(
  replicas: string,
  { prepare = () => () => {}, losesPackets = false }: Wishes = {},
): Promise<Arena | undefined> {
  const folder = newFolder()
  const serversFolder = join(folder, 'servers')
  const undo = prepare(serversFolder)
  const clocks = makeClocks(join(folder, 'clocks'))
  const postgresClock = offerPostgresClock(join(folder, 'postgres-clock'), serversFolder)
  const running = await startPrivateServers(serversFolder)
  const processOf = (name: ServerName) => running.processes.find((one) => one.name === name)
  const processes = { postgres: processOf('postgres'), redis: processOf('redis'), nats: processOf('nats') }
  if (!processes.postgres || !processes.redis || !processes.nats) {
    await running.stop()
    await undo()
    rmSync(folder, { recursive: true, force: true })
    return undefined
  }
  const behindProxy = async (process: Supervised, url: string) => ({ process, url, proxy: await startProxy(url) })
  const [postgres, redis, nats] = await Promise.all([
    behindProxy(processes.postgres, running.postgresUrl),
    behindProxy(processes.redis, running.redisUrl),
    behindProxy(processes.nats, running.natsUrl),
  ])
  const servers = { postgres, redis, nats }
  const urls = { DATABASE_URL: postgres.proxy.url, REDIS_URL: redis.proxy.url, NATS_URL: nats.proxy.url }
  const wires = losesPackets ? stretchWires(2, Object.values(urls)) : undefined
  mkdirSync(join(folder, 'stack'))
  const closeServers = async () => {
    wires?.close()
    for (const { proxy } of Object.values(servers)) proxy.close()
    await running.stop()
    await undo()
  }
  try {
    const env = { ...urls, ...clocks.env }
    const given = wires ? onMachines(folder, wires.ways, env) : env
    const stack = await startStack(['--replicas', replicas], join(folder, 'stack'), given)
    const stop = async () => {
      await stack.stop()
      await closeServers()
    }
    const remove = async () => {
      await stop()
      rmSync(folder, { recursive: true, force: true })
    }
    const streamsFolder = join(serversFolder, 'nats/jetstream')
    return { folder, stack, servers, streamsFolder, clocks, postgresClock, wires, stop, remove }
  } catch (err) {
    await closeServers()
    throw err
  }
}
