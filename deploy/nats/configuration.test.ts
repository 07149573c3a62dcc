import { type ChildProcess, spawn } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { headers } from 'nats'
import { afterAll, expect, test } from 'vitest'
import { streamName } from '@app/shared/stream.ts'
import { environmentOf } from '../new-secrets.ts'
import { portFor } from '../processes/ports.ts'
import { provisionAt } from '../provision.ts'
import { findPrograms, versionOf } from '../servers/find-program.ts'
import { withBus } from '../stack/bus.ts'
import { repository } from '../stack/options.ts'
import { newSecrets } from '../stack/secrets.ts'

const [program] = findPrograms(['nats-server'])
const folder = mkdtempSync(join(tmpdir(), 'configuration-'))
const secrets = environmentOf(newSecrets())
const names = ['nats-1', 'nats-2', 'nats-3']
const running = new Map<string, ChildProcess>()
const ports = new Map<string, Promise<number>>()

function portOf(name: string) {
  const port = ports.get(name) ?? portFor(folder, name)
  ports.set(name, port)
  return port
}

/** The configuration as it is, on ports of its own; the installed server may be too old to know the word `always`. */
async function place(name: string, file: string) {
  const own = join(folder, name)
  cpSync(join(repository, 'deploy/nats'), own, { recursive: true, filter: (path) => !path.endsWith('.ts') })
  const replace = (path: string, pairs: Array<[RegExp, string]>) => {
    const text = pairs.reduce((before, [pattern, value]) => before.replace(pattern, value), readFileSync(path, 'utf8'))
    writeFileSync(path, text)
  }
  const oldServer = Number(versionOf(program ?? '').split('.')[1]) < 10
  mkdirSync(join(own, 'data'))
  replace(join(own, 'server.conf'), [
    [/^port: .*$/m, `listen: "127.0.0.1:${await portOf(name)}"`],
    [/^http_port: .*$/m, `http: "127.0.0.1:${await portOf(`${name}-monitor`)}"`],
    [/store_dir: .*$/m, `store_dir: "${join(own, 'data')}"`],
    [/max_file: .*$/m, 'max_file: 10GB'],
    ...(oldServer ? [[/^ +sync_interval: .*$/m, ''] satisfies [RegExp, string]] : []),
  ])
  replace(join(own, 'cluster.conf'), [[/port: 6222/, `listen: "127.0.0.1:${await portOf(`${name}-routes`)}"`]])
  return join(own, file)
}

async function start(name: string, file: string) {
  const config = await place(name, file)
  const password = secrets['NATS_CLUSTER_PASSWORD']
  const routes = await Promise.all(
    names.map(async (each) => `"nats://cluster:${password}@127.0.0.1:${await portOf(`${each}-routes`)}"`),
  )
  const env = { ...secrets, NATS_SERVER_NAME: name, NATS_ROUTES: `[${routes.join(', ')}]` }
  const child = spawn(program ?? '', ['--config', config], { env, stdio: 'ignore' })
  running.set(name, child)
  return child
}

async function isHealthy(name: string) {
  const port = await portOf(`${name}-monitor`)
  return fetch(`http://127.0.0.1:${port}/healthz`).then(
    ({ ok }) => ok,
    () => false,
  )
}

afterAll(async () => {
  for (const child of running.values()) child.kill('SIGKILL')
  await sleep(100)
  rmSync(folder, { recursive: true, force: true })
})

test('three servers keep each event three times, and go on without one of them', async () => {
  for (const name of names) await start(name, 'cluster.conf')
  for (const name of names) await expect.poll(() => isHealthy(name), { timeout: 20_000, message: name }).toBe(true)
  const urls = await Promise.all(names.map(async (name) => `nats://127.0.0.1:${await portOf(name)}`))
  const bus = { natsUrl: urls.join(','), natsSeed: secrets['NATS_SEED_DEPLOY'] }
  await provisionAt(bus, 3)
  await withBus(bus, async ({ nc, request }) => {
    const jsm = await nc.jetstreamManager()
    const { config, cluster } = await jsm.streams.info(streamName)
    expect([config.num_replicas, cluster?.replicas?.length]).toEqual([3, 2])
    running.get(cluster?.leader ?? '')?.kill('SIGKILL')
    const publish = () =>
      request('event.messaging.told', Buffer.from('{}'), headers(), 1_000).then(
        (answer) => answer.string(),
        (err: unknown) => String(err),
      )
    await expect.poll(publish, { timeout: 20_000, interval: 200 }).toContain('"seq":')
  })
})

test('one server takes its users from the same file', async () => {
  const child = await start('single', 'single.conf')
  await expect.poll(() => isHealthy('single'), { timeout: 10_000 }).toBe(true)
  const url = `nats://127.0.0.1:${await portOf('single')}`
  await provisionAt({ natsUrl: url, natsSeed: secrets['NATS_SEED_DEPLOY'] })
  await expect(provisionAt({ natsUrl: url })).rejects.toThrow('Authorization Violation')
  child.kill()
})
