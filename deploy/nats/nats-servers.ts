import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { portFor } from '../processes/ports.ts'
import { tied } from '../processes/tie.ts'
import { findPrograms, versionOf } from '../servers/find-program.ts'
import { repository } from '../stack/options.ts'

/** The three of a cluster. */
export const clusterNames = ['nats-1', 'nats-2', 'nats-3'] as const

export type NatsServers = ReturnType<typeof natsServersIn>

/** By which address a server of a cluster reaches another one. */
export type RouteOf = (from: string, to: string, url: string) => Promise<string>

/**
 * nats-servers with the configuration of `deploy/nats` as it is, on ports of this machine, with their stores in the folder. With
 * `routeOf` they know no other way to each other than that, and tell clients of nobody.
 */
export function natsServersIn(folder: string, secrets: Record<string, string>, routeOf?: RouteOf) {
  const [program = 'nats-server'] = findPrograms(['nats-server'])
  const running = new Map<string, ChildProcess>()
  const ports = new Map<string, Promise<number>>()

  function portOf(name: string) {
    const port = ports.get(name) ?? portFor(folder, name)
    ports.set(name, port)
    return port
  }

  async function routesOf(from: string) {
    const password = secrets['NATS_CLUSTER_PASSWORD']
    const others = clusterNames.filter((name) => !routeOf || name !== from)
    const urls = others.map(async (name) => {
      const url = `nats://cluster:${password}@127.0.0.1:${await portOf(`${name}-routes`)}`
      return JSON.stringify(routeOf ? await routeOf(from, name, url) : url)
    })
    return `[${(await Promise.all(urls)).join(', ')}]`
  }

  const urlOf = async (name: string) => `nats://127.0.0.1:${await portOf(name)}`
  const monitorOf = async (name: string) => `http://127.0.0.1:${await portOf(`${name}-monitor`)}`

  async function kill(name: string) {
    const child = running.get(name)
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
  }

  return {
    urlOf,
    monitorOf,
    /** One that was killed finds its store again. */
    async start(name: string, file: 'single.conf' | 'cluster.conf') {
      const config = place(join(folder, name), file, versionOf(program), {
        client: await portOf(name),
        monitor: await portOf(`${name}-monitor`),
        routes: await portOf(`${name}-routes`),
      })
      if (routeOf) replace(join(folder, name, 'cluster.conf'), [hidden])
      const env = { ...secrets, PATH: process.env['PATH'], NATS_SERVER_NAME: name, NATS_ROUTES: await routesOf(name) }
      const [command, args] = tied(program, ['--config', config, '--log', join(folder, `${name}.log`)], 'SIGKILL')
      running.set(name, spawn(command, args, { env, stdio: 'ignore' }))
    },
    /** Whether it answers, and has caught up with the others. */
    async isHealthy(name: string) {
      const answer = fetch(`${await monitorOf(name)}/healthz`)
      return answer.then(
        ({ ok }) => ok,
        () => false,
      )
    },
    kill,
    killAll: () => Promise.all([...running.keys()].map(kill)),
  }
}

/** Servers tell each other's addresses; at this one nobody is. */
const hidden: [RegExp, string] = [/^cluster \{/m, 'cluster {\n  no_advertise: true\n  advertise: "127.0.0.1:1"']

type Ports = Record<'client' | 'monitor' | 'routes', number>

/** Copies the configuration; the installed server may be too old to know `sync_interval`. */
function place(own: string, file: string, version: string, ports: Ports) {
  cpSync(join(repository, 'deploy/nats'), own, { recursive: true, filter: (path) => !path.endsWith('.ts') })
  const isOld = Number(version.split('.')[1]) < 10
  mkdirSync(join(own, 'data'), { recursive: true })
  replace(join(own, 'server.conf'), [
    [/^port: .*$/m, `listen: "127.0.0.1:${ports.client}"`],
    [/^http_port: .*$/m, `http: "127.0.0.1:${ports.monitor}"`],
    [/store_dir: .*$/m, `store_dir: "${join(own, 'data')}"`],
    [/max_file: .*$/m, 'max_file: 10GB'],
    ...(isOld ? [[/^ +sync_interval: .*$/m, ''] satisfies [RegExp, string]] : []),
  ])
  replace(join(own, 'cluster.conf'), [[/port: 6222/, `listen: "127.0.0.1:${ports.routes}"`]])
  return join(own, file)
}

function replace(path: string, pairs: Array<[RegExp, string]>) {
  const text = pairs.reduce((before, [pattern, value]) => before.replace(pattern, value), readFileSync(path, 'utf8'))
  writeFileSync(path, text)
}
