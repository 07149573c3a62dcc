import { execFile } from 'node:child_process'
import { chmodSync, chownSync, mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { portFor } from '@app/deploy/processes/ports.ts'
import { postgres as server } from '@app/deploy/servers/postgres.ts'
import { initialize, locateData } from '@app/deploy/servers/postgres-data.ts'
import { childrenOf } from './children.ts'
import { asSuperuser, killIfThere, startServer, untilTrue } from './postgres-server.ts'

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

/** Undefined where this machine has no Postgres of its own. */
export async function startPostgresPair(folder: string): Promise<PostgresPair | undefined> {
  mkdirSync(folder, { mode: 0o711 })
  const program = server.find(folder)
  if (program === undefined) return undefined
  const data = locateData(folder)
  initialize(data, program)
  const urlOf = (port: number) => `postgres://postgres:${data.password}@127.0.0.1:${port}/postgres`
  const streaming = ['wal_level=replica', 'hot_standby=on']
  const port = await portFor(folder, 'primary')
  const primary = startServer(program, { ...data, port, settings: streaming })
  const url = urlOf(port)
  await untilTrue(url, (sql) => sql`select true as ok`)

  const cluster = `${data.cluster}-standby`
  mkdirSync(cluster, { mode: 0o700 })
  if (data.account) chownSync(cluster, data.account.uid, data.account.gid)
  chmodSync(cluster, 0o700)
  const backup = ['-D', cluster, '-d', `${url}?application_name=standby`, '-R', '-X', 'stream', '-c', 'fast']
  await run(join(dirname(program), 'pg_basebackup'), backup, { cwd: data.home, ...data.account })
  const standbyPort = await portFor(folder, 'standby')
  const standby = startServer(program, { ...data, cluster, port: standbyPort, settings: streaming })
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
