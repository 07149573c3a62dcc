import { execFile } from 'node:child_process'
import { chownSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { portFor } from '@app/deploy/processes/ports.ts'
import { findPrograms } from '@app/deploy/servers/find-program.ts'
import { postgres as server } from '@app/deploy/servers/postgres.ts'
import { initialize, locateData } from '@app/deploy/servers/postgres-data.ts'
import { childrenOf } from './children.ts'
import { asSuperuser, killIfThere, startServer, untilTrue } from './postgres-server.ts'

const run = promisify(execFile)

/** A Postgres whose log pgBackRest archives. */
export interface ArchivedPostgres {
  url: string
  /** All of it, while it is written to. */
  backUp: () => Promise<void>
  /** The server dies, and its data is made anew of the backup and the log up to the moment, at the same address. */
  restoreTo: (moment: Date) => Promise<void>
  stop: () => Promise<void>
}

/** Undefined where this machine has no Postgres or pgBackRest of its own. */
export async function startArchivedPostgres(folder: string): Promise<ArchivedPostgres | undefined> {
  const [program] = findPrograms(['pgbackrest'])
  mkdirSync(folder, { mode: 0o711 })
  const postgresProgram = server.find(folder)
  if (!program || !postgresProgram) return undefined
  const data = locateData(folder)
  initialize(data, postgresProgram)
  const port = await portFor(folder, 'archived')
  const own = join(data.home, 'pgbackrest')
  mkdirSync(own, { mode: 0o700 })
  const configFile = join(own, 'pgbackrest.conf')
  writeFileSync(configFile, configuration({ own, cluster: data.cluster, port }))
  if (data.account) for (const path of [own, configFile]) chownSync(path, data.account.uid, data.account.gid)

  const words = [`--config=${configFile}`, '--stanza=main']
  const pgBackRest = (...args: string[]) =>
    run(program, [...words, ...args], { cwd: own, env: { PGPASSWORD: data.password }, ...data.account })
  const settings = [
    `unix_socket_directories=${own}`,
    'archive_mode=on',
    `archive_command=${[program, ...words, 'archive-push', '%p'].join(' ')}`,
  ]
  const url = `postgres://postgres:${data.password}@127.0.0.1:${port}/postgres`
  async function start() {
    const started = startServer(postgresProgram ?? '', { ...data, port, settings })
    await untilTrue(url, (sql) => sql`select not pg_is_in_recovery() as ok`)
    return started
  }
  let running = await start()
  await pgBackRest('stanza-create')

  return {
    url,
    async backUp() {
      await pgBackRest('--type=full', 'backup')
    },
    async restoreTo(moment) {
      await asSuperuser(url, (sql) => sql`select pg_switch_wal()`)
      // What stands in a segment that was not archived yet is lost with the server.
      await untilTrue(
        url,
        (sql) => sql`select last_archived_time > now() - interval '1 minute' as ok from pg_stat_archiver`,
      )
      for (const pid of [running.pid, ...childrenOf(running.pid)]) killIfThere(pid)
      await running.ended
      rmSync(join(data.cluster, 'postmaster.pid'))
      // It knows no other way of writing it.
      const time = moment.toISOString().replace('T', ' ').replace('Z', '+00')
      const target = ['--type=time', `--target=${time}`, '--target-action=promote']
      await pgBackRest('--delta', ...target, 'restore')
      running = await start()
    },
    async stop() {
      killIfThere(running.pid, 'SIGQUIT')
      await running.ended
    },
  }
}

const configuration = ({ own, cluster, port }: { own: string; cluster: string; port: number }) => `
[global]
repo1-path=${join(own, 'repository')}
lock-path=${join(own, 'locks')}
spool-path=${join(own, 'spool')}
log-level-file=off
start-fast=y
[main]
pg1-path=${cluster}
pg1-port=${port}
pg1-socket-path=${own}
pg1-user=postgres
`
