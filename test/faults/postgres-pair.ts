import { execFile, spawn } from 'node:child_process'
import { chmodSync, chownSync, mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { portFor } from '@app/deploy/processes/ports.ts'
import { tied } from '@app/deploy/processes/tie.ts'
import { postgres as server } from '@app/deploy/servers/postgres.ts'
import { initialize, locateData } from '@app/deploy/servers/postgres-data.ts'
import postgres from 'postgres'
import { until } from '../journeys/client.ts'
import { childrenOf } from './children.ts'

const run = promisify(execFile)

/** A primary, and a standby that streams from it. */
export interface PostgresPair {
  url: string
  standbyUrl: string
  /** From now on the primary commits when the standby has it, too. */
  makeSynchronous: () => Promise<void>
  /** What the primary commits from now on does not reach the standby. */
  cutOff: () => Promise<void>
  /** With -9, and with all its processes. */
  killPrimary: () => Promise<void>
  promote: () => Promise<void>
  stop: () => Promise<void>
}

type Account = ReturnType<typeof locateData>['account']

/** Undefined where this machine has no Postgres of its own. */
export async function startPostgresPair(folder: string): Promise<PostgresPair | undefined> {
  mkdirSync(folder, { mode: 0o711 })
  const program = server.find(folder)
  if (program === undefined) return undefined
  const data = locateData(folder)
  initialize(data, program)
  const urlOf = (port: number) => `postgres://postgres:${data.password}@127.0.0.1:${port}/postgres`
  const port = await portFor(folder, 'primary')
  const primary = await startServer(program, data.cluster, port, data.account)
  const url = urlOf(port)
  await untilTrue(url, (sql) => sql`select true as ok`)

  const cluster = `${data.cluster}-standby`
  mkdirSync(cluster, { mode: 0o700 })
  if (data.account) chownSync(cluster, data.account.uid, data.account.gid)
  chmodSync(cluster, 0o700)
  const backup = ['-D', cluster, '-d', `${url}?application_name=standby`, '-R', '-X', 'stream', '-c', 'fast']
  await run(join(dirname(program), 'pg_basebackup'), backup, { cwd: data.home, ...data.account })
  const standbyPort = await portFor(folder, 'standby')
  const standby = await startServer(program, cluster, standbyPort, data.account)
  const standbyUrl = urlOf(standbyPort)
  const streams = (state: string) =>
    untilTrue(url, (sql) => sql`select true as ok from pg_stat_replication where sync_state = ${state}`)
  await streams('async')

  return {
    url,
    standbyUrl,
    async makeSynchronous() {
      await asSuperuser(url, async (sql) => {
        await sql`alter system set synchronous_standby_names = 'standby'`
        await sql`select pg_reload_conf()`
      })
      await streams('sync')
    },
    cutOff: () =>
      asSuperuser(url, async (sql) => {
        const senders = await sql<{ pid: number }[]>`select pid from pg_stat_replication`
        for (const { pid } of senders) process.kill(pid, 'SIGSTOP')
      }),
    async killPrimary() {
      for (const pid of [primary.pid, ...childrenOf(primary.pid)]) killIfThere(pid)
      await primary.ended
    },
    promote: () => untilTrue(standbyUrl, (sql) => sql`select pg_promote() as ok`),
    async stop() {
      for (const { pid } of [primary, standby]) killIfThere(pid, 'SIGQUIT')
      await Promise.all([primary.ended, standby.ended])
    },
  }
}

function killIfThere(pid: number, signal: NodeJS.Signals = 'SIGKILL') {
  try {
    process.kill(pid, signal)
  } catch {
    // It has ended.
  }
}

async function startServer(program: string, cluster: string, port: number, account: Account) {
  const settings = [
    'listen_addresses=127.0.0.1',
    `port=${port}`,
    'unix_socket_directories=',
    'max_connections=200',
    'fsync=off',
    'wal_level=replica',
    'hot_standby=on',
  ].flatMap((setting) => ['-c', setting])
  const [command, args] = tied(program, ['-D', cluster, ...settings], 'SIGQUIT')
  const child = spawn(command, args, { cwd: dirname(cluster), stdio: 'ignore', ...account })
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  if (child.pid === undefined) throw new Error('Postgres did not start.')
  return { pid: child.pid, ended }
}

async function asSuperuser<T>(url: string, work: (sql: postgres.Sql) => Promise<T>) {
  const sql = postgres(url, { max: 1, connect_timeout: 2, onnotice: () => {} })
  try {
    return await work(sql)
  } finally {
    await sql.end({ timeout: 1 })
  }
}

const untilTrue = (url: string, ask: (sql: postgres.Sql) => PromiseLike<readonly postgres.Row[]>) =>
  until(async () => {
    const [row] = await asSuperuser(url, async (sql) => ask(sql))
    if (row?.['ok'] !== true) throw new Error(`${url} is not there yet.`)
  }, 30_000)
