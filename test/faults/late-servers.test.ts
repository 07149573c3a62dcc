import { type ChildProcess, spawn } from 'node:child_process'
import { createWriteStream, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { migrate } from '@app/deploy/migrate.ts'
import { type Instance, instancesOf } from '@app/deploy/stack/service-programs.ts'
import { type Options, serviceNames } from '@app/deploy/stack/options.ts'
import { newSecrets, passwordsOf } from '@app/deploy/stack/secrets.ts'
import { withBus } from '@app/deploy/stack/bus.ts'
import { consumers } from '@app/shared/events/provision.ts'
import { streamName } from '@app/shared/events/stream.ts'
import { request } from 'undici'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { until } from '../journeys/client.ts'
import { newFolder } from '../journeys/start-stack.ts'
import { startPrivateServers } from '../servers.ts'
import { type Proxy, startProxy } from './nemesis/proxy.ts'

const folder = newFolder()
const running: ChildProcess[] = []
let servers: Awaited<ReturnType<typeof startPrivateServers>>
let proxies: Record<'postgres' | 'redis' | 'nats', Proxy>
beforeAll(async () => {
  servers = await startPrivateServers(join(folder, 'servers'))
  const [postgres, redis, nats] = await Promise.all([
    startProxy(servers.postgresUrl),
    startProxy(servers.redisUrl),
    startProxy(servers.natsUrl),
  ])
  proxies = { postgres, redis, nats }
})
afterAll(async () => {
  for (const child of running) child.kill('SIGKILL')
  for (const proxy of Object.values(proxies)) proxy.close()
  await servers.stop()
  rmSync(folder, { recursive: true, force: true })
})

const secrets = newSecrets()
const twice = Object.fromEntries(serviceNames.map((name) => [name, 2])) as Options['replicas']

/** Two instances of each service, whose servers are behind the proxies. */
async function startAll(): Promise<Instance[]> {
  const { postgres, redis, nats } = proxies
  const dataDir = join(folder, 'stack')
  mkdirSync(join(dataDir, 'logs'), { recursive: true })
  const urls = { postgresUrl: postgres.url, redisUrl: redis.url, natsUrl: nats.url }
  const instances = await instancesOf({
    options: { dataDir, port: 18_080, replicas: twice, natsReplicas: 1, quiet: true },
    secrets,
    servers: { ...urls, processes: [], stop: () => Promise.resolve() },
    publicUrl: 'http://gateway.example:8080',
    simulatorUrl: 'http://127.0.0.1:1',
  })
  for (const { program } of instances) {
    const { NATS_NKEY_SEED: _, ...env } = program.env ?? {}
    // The first gateway would take the port that was asked for; nobody asks it anything.
    const child = spawn(program.command, program.args.slice(-1), { env: { ...env, PORT: '0' }, cwd: program.cwd })
    const log = createWriteStream(join(dataDir, 'logs', `${program.name}.log`))
    child.stdout.pipe(log)
    child.stderr.pipe(log)
    running.push(child)
  }
  return instances
}

const probe = async ({ url }: Instance, path: string) => {
  const { statusCode, body } = await request(`${url}${path}`)
  return { status: statusCode, text: await body.text() }
}

const linesOf = ({ program }: Instance) =>
  readFileSync(join(folder, 'stack/logs', `${program.name}.log`), 'utf8')
    .split('\n')
    .filter(Boolean)

/** Of the classes 28: `invalid_password`, when there is no such role. */
const isRefusedLogin = (line: string) => line.includes('"code":"28')

test(
  'started before Postgres, NATS and Redis are there, two of each service wait, alive and not ready, and serve when they come, on an empty bus',
  { timeout: 120_000 },
  async () => {
    for (const proxy of Object.values(proxies)) proxy.refuse()
    const instances = await startAll()
    await until(async () => {
      for (const instance of instances) expect((await probe(instance, '/livez')).status).toBe(200)
    }, 60_000)
    for (const instance of instances) expect(await probe(instance, '/readyz')).toMatchObject({ status: 503 })

    proxies.nats.heal()
    proxies.redis.heal()
    proxies.postgres.heal()
    // Nobody has provisioned, and nobody has migrated: there is not even a login.
    const withData = instances.filter(({ service }) => service !== 'gateway')
    await until(() => expect(withData.filter((one) => !linesOf(one).some(isRefusedLogin))).toEqual([]), 60_000)
    for (const instance of withData) {
      expect(await probe(instance, '/readyz')).toMatchObject({ status: 503 })
    }
    await migrate(servers.postgresUrl, { passwords: passwordsOf(secrets) })
    await until(async () => {
      for (const instance of instances) expect(await probe(instance, '/readyz')).toEqual({ status: 200, text: 'ok\n' })
    }, 60_000)

    expect(running.filter(({ exitCode, signalCode }) => exitCode !== null || signalCode !== null)).toEqual([])
    await withBus({ natsUrl: servers.natsUrl }, async ({ nc }) => {
      const jsm = await nc.jetstreamManager()
      await until(async () => {
        const there = await jsm.consumers.list(streamName).next()
        expect(there.map(({ name }) => name).toSorted()).toEqual(
          Object.values(consumers)
            .map(({ name }) => name)
            .toSorted(),
        )
      })
    })
    // 50: an error. What waits is a warning, but for a login that is refused: that may be a wrong password.
    const errors = instances
      .flatMap(linesOf)
      .filter((line) => !line.startsWith('{') || (JSON.parse(line).level >= 50 && !isRefusedLogin(line)))
    expect(errors).toEqual([])
  },
)
