import { mkdirSync } from 'node:fs'
import { portFor } from '@app/deploy/processes/ports.ts'
import { postgres as server } from '@app/deploy/servers/postgres.ts'
import { initialize, locateData } from '@app/deploy/servers/postgres-data.ts'
import { childrenOf } from './children.ts'
import { killIfThere, startServer, untilTrue } from './postgres-server.ts'

/** A Postgres whose data outlives it, at one of two addresses. */
interface CrashingPostgres {
  urls: Record<Address, string>
  start: (at: Address) => Promise<void>
  /** With -9, and with all its processes. */
  kill: () => Promise<void>
  /** In order. */
  stop: () => Promise<void>
}

type Address = 'first' | 'later'

/** Undefined where this machine has no Postgres of its own. */
export async function locateCrashing(folder: string, settings: string[]): Promise<CrashingPostgres | undefined> {
  mkdirSync(folder, { mode: 0o711 })
  const program = server.find(folder)
  if (program === undefined) return undefined
  const data = locateData(folder)
  initialize(data, program)
  const ports = { first: await portFor(folder, 'first'), later: await portFor(folder, 'later') }
  const urlOf = (port: number) => `postgres://postgres:${data.password}@127.0.0.1:${port}/postgres`
  const urls = { first: urlOf(ports.first), later: urlOf(ports.later) }
  let running: ReturnType<typeof startServer> | undefined
  const end = async (signal: NodeJS.Signals, pids: number[]) => {
    for (const pid of pids) killIfThere(pid, signal)
    await running?.ended
    running = undefined
  }
  return {
    urls,
    async start(at) {
      running = startServer(program, { ...data, port: ports[at], settings })
      await untilTrue(urls[at], (sql) => sql`select true as ok`)
    },
    kill: () => end('SIGKILL', running ? [running.pid, ...childrenOf(running.pid)] : []),
    stop: () => end('SIGINT', running ? [running.pid] : []),
  }
}
