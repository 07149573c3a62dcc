import { spawn } from 'node:child_process'
import { chmodSync, chownSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { postgresAccount } from '@app/deploy/servers/account.ts'
import { findPrograms } from '@app/deploy/servers/find-program.ts'
import { tied } from '@app/deploy/processes/tie.ts'
import postgres from 'postgres'
import { freePort } from './free-port.ts'
import { until } from './until.ts'

export interface PgBouncer {
  url: string
  stop: () => Promise<void>
}

interface Mode {
  poolMode: 'session' | 'transaction'
  ignored: string[]
}

/** Undefined where it is not installed. Whoever comes is let in, and logs in at the server as the address says. */
export async function startPgBouncer(target: string, { poolMode, ignored }: Mode): Promise<PgBouncer | undefined> {
  const [program] = findPrograms(['pgbouncer'], ['/usr/sbin/pgbouncer'])
  if (program === undefined) return undefined
  const folder = mkdtempSync(join(tmpdir(), 'pgbouncer-'))
  const { hostname, port, username, password } = new URL(target)
  const listenPort = await freePort()
  const file = join(folder, 'pgbouncer.ini')
  const login = `user=${username} password=${decodeURIComponent(password)}`
  const lines = [
    '[databases]',
    `* = host=${hostname} port=${port} ${login}`,
    '[pgbouncer]',
    'listen_addr = 127.0.0.1',
    `listen_port = ${listenPort}`,
    'unix_socket_dir =',
    'auth_type = any',
    `pool_mode = ${poolMode}`,
    ...(ignored.length > 0 ? [`ignore_startup_parameters = ${ignored.join(', ')}`] : []),
  ]
  writeFileSync(file, `${lines.join('\n')}\n`)
  const account = postgresAccount(folder)
  chmodSync(folder, 0o700)
  if (account) for (const path of [folder, file]) chownSync(path, account.uid, account.gid)
  const [command, args] = tied(program, ['--quiet', file], 'SIGTERM')
  const child = spawn(command, args, { cwd: folder, stdio: 'ignore', ...account })
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const url = new URL(target)
  url.host = `127.0.0.1:${listenPort}`
  const isUp = postgres(url.href, { max: 1, connection: { application_name: 'test' } })
  await until(() => isUp`select 1`)
  await isUp.end({ timeout: 1 })
  return {
    url: url.href,
    async stop() {
      child.kill('SIGTERM')
      await ended
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
