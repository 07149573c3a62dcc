import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { logFileOf } from '@app/deploy/processes/log-file.ts'
import { portFor } from '@app/deploy/processes/ports.ts'
import { findRecorded } from '@app/deploy/processes/records.ts'
import { operatorOptions } from '@app/deploy/stack/bus.ts'
import { busPlaceOf } from '@app/deploy/stack/stack-file.ts'
import type { CursorKeys } from '@app/shared/api/page.ts'
import { connect, type NatsConnection } from 'nats'
import postgres, { type Sql } from 'postgres'
import type { Options } from '../options.ts'
import { allMemory, type Memory, memoryMibOf, type Roots } from '../processes.ts'
import { control } from './control.ts'
import { type RunningStack, type StackFile, type StackPlace, startStack } from './stack.ts'
import { readSecrets } from './secrets.ts'

/** The project, running as `npm start` runs it, with whatever its own settings are; the platform tells no statuses. */
export interface Project {
  stack: () => StackFile
  appSecret: () => string
  /** What the cursors of lists are signed with. */
  cursorKeys: () => CursorKeys
  /** The database of the stack, as its superuser. */
  sql: () => Sql
  nc: () => NatsConnection
  /** Where the server of the database writes its log, when it runs on this machine. */
  postgresLog: string
  /** The five services and the three servers; the simulator is the outside world's. */
  roots: () => { services: Roots; servers: Roots; simulator: Roots }
  /** What each service held when all had been ready for a moment; nothing had been asked of them. */
  atRestMib: Record<string, Memory>
  /** The same of the moment at which they together held most. */
  mostMib: () => Record<string, Memory>
  /** Services and servers that ended by themselves. */
  died: () => string[]
  /** Stops the stack and starts it as `npm start` does, with the data that it has; answers how long it took to be ready. */
  restart: () => Promise<number>
  /** Ends the stack. The services leave their profiles. */
  stop: () => Promise<void>
  profiles: string | undefined
}

const restMs = { whole: 3_000, quick: 500 }
/** The system counts each page of the five for a look. */
const lookEveryMs = 1_000

export async function openProject(folder: string, { profile, quick }: Options): Promise<Project> {
  const dataDir = join(folder, 'stack')
  mkdirSync(dataDir, { mode: 0o711 })
  const profiles = profile ? join(folder, 'profiles') : undefined
  const place: StackPlace = { dataDir, port: await portFor(dataDir, 'gateway'), profiles }
  let running: RunningStack = await startStack(place)
  let { sql, nc } = await connectTo(running)
  await sleep(restMs[quick ? 'quick' : 'whole'])

  const services = () => rootsOf(Object.entries(running.file.services))
  const atRestMib = memoryMibOf(services())
  let mostMib = atRestMib
  const watch = setInterval(() => {
    const nowMib = memoryMibOf(services())
    if (allMemory(nowMib).pss > allMemory(mostMib).pss) mostMib = nowMib
  }, lookEveryMs)

  let ended: Promise<void> | undefined
  async function end() {
    await Promise.all([sql.end({ timeout: 1 }), nc.close()])
    await running.stop()
  }
  return {
    stack: () => running.file,
    appSecret: () => readSecrets(dataDir).upstreamAppSecret,
    cursorKeys: () => readSecrets(dataDir).cursorKeys,
    sql: () => sql,
    nc: () => nc,
    postgresLog: logFileOf(dataDir, 'postgres'),
    roots: () => ({
      services: services(),
      servers: rootsOf(Object.entries(running.file.servers).map(([name, server]) => [name, [server]])),
      simulator: { simulator: [findRecorded(dataDir, 'simulator') ?? 0] },
    }),
    atRestMib,
    mostMib: () => mostMib,
    died: () => running.died(),
    async restart() {
      await end()
      // npm may run on a Node that refuses the option for profiles.
      running = await startStack(place, profiles === undefined ? 'npm' : 'node')
      ;({ sql, nc } = await connectTo(running))
      return running.startedInMs
    },
    stop() {
      clearInterval(watch)
      return (ended ??= end())
    },
    profiles,
  }
}

async function connectTo({ file }: RunningStack) {
  await control(file.simulator_url, 'POST', 'settings', { statuses: [] })
  const nc = await connect({ ...operatorOptions(busPlaceOf(file)), noAsyncTraces: true })
  return { nc, sql: postgres(file.postgres_url, { max: 2, onnotice: () => {} }) }
}

const rootsOf = (named: Array<[string, Array<{ pid: number | null }>]>): Roots =>
  Object.fromEntries(named.map(([name, all]) => [name, all.flatMap(({ pid }) => pid ?? [])]))
