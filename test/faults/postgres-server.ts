import { spawn } from 'node:child_process'
import { dirname } from 'node:path'
import { tied } from '@app/deploy/processes/tie.ts'
import type { PostgresData } from '@app/deploy/servers/postgres-data.ts'
import postgres from 'postgres'
import { until } from '../journeys/client.ts'

interface Place extends Pick<PostgresData, 'cluster' | 'account'> {
  port: number
  /** Such as `wal_level=replica`. */
  settings: string[]
}

/** A Postgres on 127.0.0.1, which ends with this process. */
export function startServer(program: string, { cluster, account, port, settings }: Place) {
  const all = [
    'listen_addresses=127.0.0.1',
    `port=${port}`,
    'unix_socket_directories=',
    'max_connections=200',
    'fsync=off',
    ...settings,
  ].flatMap((setting) => ['-c', setting])
  const [command, args] = tied(program, ['-D', cluster, ...all], 'SIGQUIT')
  const child = spawn(command, args, { cwd: dirname(cluster), stdio: 'ignore', ...account })
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  if (child.pid === undefined) throw new Error('Postgres did not start.')
  return { pid: child.pid, ended }
}

export function killIfThere(pid: number, signal: NodeJS.Signals = 'SIGKILL') {
  try {
    process.kill(pid, signal)
  } catch {
    // It has ended.
  }
}

export async function asSuperuser<T>(url: string, work: (sql: postgres.Sql) => Promise<T>): Promise<T> {
  const sql = postgres(url, { max: 1, connect_timeout: 2, onnotice: () => {} })
  try {
    return await work(sql)
  } finally {
    await sql.end({ timeout: 1 })
  }
}

/** Asks until the answer has a column `ok` that is true. */
export const untilTrue = (url: string, ask: (sql: postgres.Sql) => PromiseLike<readonly postgres.Row[]>) =>
  until(async () => {
    const [row] = await asSuperuser(url, async (sql) => ask(sql))
    if (row?.['ok'] !== true) throw new Error(`${url} is not there yet.`)
  }, 30_000)
