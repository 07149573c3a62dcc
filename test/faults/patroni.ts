import { spawn } from 'node:child_process'
import { chmodSync, chownSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { postgresAccount } from '@app/deploy/servers/account.ts'
import { findPrograms } from '@app/deploy/servers/find-program.ts'
import { portFor } from '@app/deploy/processes/ports.ts'
import { tied } from '@app/deploy/processes/tie.ts'
import { postgres as server } from '@app/deploy/servers/postgres.ts'
import { locale } from '@app/deploy/servers/postgres-data.ts'
import { request } from 'undici'
import { until } from '../until.ts'
import { childrenOf } from './children.ts'

/** Three servers of Postgres, of which Patroni makes one the primary and one its synchronous standby, and etcd, which it asks. */
export interface PatroniCluster {
  /** All three, as `DATABASE_URL` may name them. */
  url: string
  /** The name of the primary, once there is one, which is not `other`. */
  leader: (other?: string) => Promise<string>
  switchOver: () => Promise<void>
  /** With -9: Patroni, and all processes of its Postgres. */
  kill: (name: string) => Promise<void>
  start: (name: string) => void
  /** Answers how it goes on. */
  freeze: (name: string) => () => void
  /** Once a primary has a synchronous standby, and a third server. */
  whole: () => Promise<void>
  stop: () => Promise<void>
}

/** Patroni's least: how long a primary that says nothing keeps its place. */
const leaseSeconds = 20
const password = 'of-patroni'
const names = ['one', 'two', 'three']

interface Member {
  restPort: number
  data: string
  pid: number | undefined
}

/** Undefined where this machine has no Patroni, etcd or Postgres of its own. */
export async function startPatroni(folder: string): Promise<PatroniCluster | undefined> {
  const [patroni] = findPrograms(['patroni'])
  const [etcd] = findPrograms(['etcd'])
  mkdirSync(folder, { mode: 0o711 })
  const program = server.find(folder)
  if (!patroni || !etcd || !program) return undefined
  const account = postgresAccount(folder)
  if (account) chownSync(folder, account.uid, account.gid)

  const ending: Array<Promise<void>> = []
  function run(command: string, args: string[]) {
    const [file, all] = tied(command, args, 'SIGKILL')
    const child = spawn(file, all, { cwd: folder, stdio: 'ignore', ...account })
    ending.push(new Promise((resolve) => child.once('exit', () => resolve())))
    return child.pid
  }

  const [etcdPort, peerPort] = [await portFor(folder, 'etcd'), await portFor(folder, 'etcd-peer')]
  const [etcdUrl, peerUrl] = [etcdPort, peerPort].map((port) => `http://127.0.0.1:${port}`) as [string, string]
  const etcdPid = run(etcd, [
    '--data-dir', join(folder, 'etcd'), '--listen-client-urls', etcdUrl, '--advertise-client-urls', etcdUrl,
    '--listen-peer-urls', peerUrl, '--initial-advertise-peer-urls', peerUrl, '--initial-cluster', `default=${peerUrl}`,
  ]) // prettier-ignore

  const members = new Map<string, Member>()
  const ports: number[] = []
  for (const name of names) {
    const [port, restPort] = [await portFor(folder, name), await portFor(folder, `${name}-rest`)]
    const data = join(folder, name)
    const settings = {
      name,
      port,
      restPort,
      data,
      binaries: dirname(program),
      etcdPort,
      passFile: join(folder, `${name}.pass`),
    }
    writeFileSync(join(folder, `${name}.json`), JSON.stringify(configuration(settings)))
    chmodSync(join(folder, `${name}.json`), 0o644)
    ports.push(port)
    members.set(name, { restPort, data, pid: undefined })
  }
  const member = (name: string) => {
    const found = members.get(name)
    if (!found) throw new Error(`There is no ${name}.`)
    return found
  }
  const start = (name: string) => {
    member(name).pid = run(patroni, [join(folder, `${name}.json`)])
  }

  const ask = (name: string, path: string) =>
    request(`http://127.0.0.1:${member(name).restPort}${path}`, { headersTimeout: 1_000 })
  const isPrimary = async (name: string) => {
    const { statusCode, body } = await ask(name, '/primary')
    await body.dump()
    return statusCode === 200
  }
  const primaries = async () => {
    const answers = await Promise.all(names.map((name) => isPrimary(name).catch(() => false)))
    return names.filter((_, n) => answers[n])
  }
  const leader = (other?: string) =>
    until(async () => {
      const [found, ...more] = await primaries()
      if (!found || more.length > 0 || found === other) throw new Error('there is no new primary yet')
      return found
    }, 90_000)
  const membersOf = async (name: string) => {
    const { body } = await ask(name, '/cluster')
    return (await body.json()) as { members: { role: string; timeline?: number }[] }
  }
  // As the primary sees them: the others still tell for a moment what they were of the one before.
  const whole = () =>
    until(async () => {
      const { members: seen } = await membersOf(await leader())
      const roles = seen.map(({ role }) => role).toSorted()
      const timelines = new Set(seen.map(({ timeline }) => timeline))
      if (roles.join() !== 'leader,replica,sync_standby' || timelines.size !== 1)
        throw new Error('not all standbys are there')
    }, 120_000)

  /** Patroni and its Postgres, which is no child of it after a restart. */
  function processesOf(name: string) {
    const { pid, data } = member(name)
    const file = join(data, 'postmaster.pid')
    // Patroni stops it to have it follow another one.
    const [postmaster = ''] = existsSync(file) ? readFileSync(file, 'utf8').split('\n') : []
    return [pid ?? 0, Number(postmaster)].filter(Boolean).flatMap((root) => [root, ...childrenOf(root)])
  }
  function signalAll(name: string, signal: NodeJS.Signals) {
    for (const pid of processesOf(name)) {
      try {
        process.kill(pid, signal)
      } catch {
        // It has ended.
      }
    }
  }

  // The first makes the database, which the others copy.
  start('one')
  await leader()
  for (const name of ['two', 'three']) start(name)
  await whole()

  return {
    url: `postgres://postgres:${password}@${ports.map((port) => `127.0.0.1:${port}`).join(',')}/postgres`,
    leader,
    start,
    whole,
    async switchOver() {
      const from = await leader()
      await request(`http://127.0.0.1:${member(from).restPort}/switchover`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ leader: from }),
      })
      await leader(from)
    },
    async kill(name) {
      signalAll(name, 'SIGKILL')
      await sleep(100)
    },
    freeze(name) {
      signalAll(name, 'SIGSTOP')
      return () => signalAll(name, 'SIGCONT')
    },
    async stop() {
      for (const name of names) signalAll(name, 'SIGKILL')
      if (etcdPid !== undefined) process.kill(etcdPid, 'SIGKILL')
      await Promise.all(ending)
    },
  }
}

interface Settings {
  name: string
  port: number
  restPort: number
  data: string
  binaries: string
  etcdPort: number
  passFile: string
}

/** JSON is YAML, which Patroni reads. */
function configuration({ name, port, restPort, data, binaries, etcdPort, passFile }: Settings) {
  const login = { username: 'postgres', password }
  const dcs = {
    ttl: leaseSeconds,
    loop_wait: 2,
    retry_timeout: 4,
    synchronous_mode: true,
    postgresql: {
      use_pg_rewind: true,
      parameters: { max_connections: 200, wal_level: 'replica', hot_standby: 'on', wal_log_hints: 'on' },
    },
  }
  const rules = ['all', 'replication'].map((database) => `host ${database} all 127.0.0.1/32 scram-sha-256`)
  return {
    scope: 'test',
    name,
    restapi: { listen: `127.0.0.1:${restPort}`, connect_address: `127.0.0.1:${restPort}` },
    etcd3: { host: `127.0.0.1:${etcdPort}` },
    bootstrap: {
      dcs,
      initdb: locale
        .map((option) => option.replace(/^--/, '').split('='))
        .map(([key = '', value]) => ({ [key]: value })),
    },
    postgresql: {
      listen: `127.0.0.1:${port}`,
      connect_address: `127.0.0.1:${port}`,
      data_dir: data,
      bin_dir: binaries,
      pgpass: passFile,
      authentication: { superuser: login, replication: login, rewind: login },
      parameters: { unix_socket_directories: dirname(data), fsync: 'off', password_encryption: 'scram-sha-256' },
      pg_hba: rules,
    },
  }
}
