import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { z } from 'zod'
import { buildImage, entriesBelow, type Image } from './image/build.ts'
import { authorizationOf, keyVariableOf } from './nats/authorization.ts'
import { environmentOf } from './new-secrets.ts'
import { portFor } from './processes/ports.ts'
import { type Servers, startServers } from './servers/start-servers.ts'
import { repository, type ServiceName, serviceNames } from './stack/options.ts'
import { newSecrets } from './stack/secrets.ts'

const Program = z.object({
  image: z.string(),
  command: z.array(z.string()).optional(),
  entrypoint: z.array(z.string()).optional(),
  environment: z.record(z.string(), z.string().nullable()).default({}),
  read_only: z.boolean().default(false),
  cap_drop: z.array(z.string()).default([]),
  networks: z.array(z.string()),
  depends_on: z.record(z.string(), z.object({ condition: z.string() })).default({}),
  healthcheck: z.object({ test: z.array(z.string()) }).optional(),
  logging: z.object({ driver: z.string() }).optional(),
})
const file = z
  .object({ services: z.record(z.string(), Program) })
  .parse(parse(readFileSync(join(repository, 'deploy/compose.yaml'), 'utf8'), { merge: true }))
const dockerfile = readFileSync(join(repository, 'deploy/image/Dockerfile'), 'utf8')
const servers = ['postgres', 'redis', 'nats']
const programs = Object.entries(file.services).filter(([name]) => !servers.includes(name))

const isRoot = process.getuid?.() === 0
const dataDir = mkdtempSync(join(tmpdir(), 'compose-'))
const secrets: Record<string, string> = {
  ...environmentOf(newSecrets()),
  PUBLIC_URL: 'https://chat.example',
  UPSTREAM_APP_ID: '1000',
  UPSTREAM_APP_SECRET: 'app-secret',
}
const running: ChildProcess[] = []
let started: Servers
let image: Image

beforeAll(async () => {
  const natsAuthorization = authorizationOf((user) => secrets[keyVariableOf(user)] ?? '')
  // The image is read by another user.
  chmodSync(dataDir, 0o755)
  image = buildImage(join(dataDir, 'image'))
  started = await startServers({ dataDir, log: () => {}, temporary: true, natsAuthorization })
}, 180_000)

afterAll(async () => {
  for (const child of running) child.kill('SIGKILL')
  await started.stop()
  rmSync(dataDir, { recursive: true, force: true })
})

/** As compose does: `${NAME:?}` must be given, `${NAME:-default}` may. */
const filledIn = (text: string) =>
  text.replaceAll(/\$\{(\w+):([?-])([^}]*)\}/g, (_whole, name: string, kind: string, fallback: string) => {
    const value = secrets[name] || (kind === '-' ? fallback : undefined)
    if (value === undefined) throw new Error(`${name} is not set`)
    return value
  })

/** The environment of the image and of the file, and nothing else; the servers' names lead to ours. */
function environmentIn(name: string, more: Record<string, string> = {}) {
  const ofFile = Object.entries(file.services[name]?.environment ?? {}).flatMap(([variable, value]) =>
    value === null ? [] : [[variable, ours(filledIn(value))]],
  )
  return { ...image.environment, ...Object.fromEntries(ofFile), ...more }
}

function ours(value: string) {
  if (value === '/media') return join(image.root, 'media')
  if (value === 'nats://nats:4222') return started.natsUrl
  if (value === 'redis://redis:6379') return started.redisUrl
  if (!value.startsWith('postgres://')) return value
  const [url, own] = [new URL(value), new URL(started.postgresUrl)]
  if (url.username === 'postgres') return own.href
  url.host = own.host
  return url.href
}

function run(name: string, more: Record<string, string> = {}) {
  const { entrypoint = image.entrypoint, command = image.command } = file.services[name] ?? {}
  const [program = '', ...args] = [...entrypoint, ...command]
  const child = spawn(join(image.root, 'usr/local/bin', program), args, {
    cwd: join(image.root, image.workdir),
    env: environmentIn(name, more),
    stdio: ['ignore', 'pipe', 'pipe'],
    // Only root can become another.
    ...(isRoot && image.user),
  })
  running.push(child)
  const said: string[] = []
  child.stdout.on('data', (chunk: Buffer) => said.push(chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => said.push(chunk.toString()))
  return { child, said }
}

async function runToItsEnd(name: string) {
  const { child, said } = run(name)
  const [code] = await once(child, 'exit')
  return { code, said: said.join('') }
}

test('the schemas, the stream and every service come up with what the file sets, and nothing else', async () => {
  expect(await runToItsEnd('migrate')).toMatchObject({ code: 0, said: expect.stringContaining('migrations applied') })
  expect(await runToItsEnd('provision')).toMatchObject({ code: 0 })
  const services = await Promise.all(
    serviceNames.map(async (name) => {
      const probePort = String(await portFor(dataDir, `${name}-probe`))
      const PORT = String(await portFor(dataDir, name))
      return {
        name,
        probePort,
        ...run(name, { PORT, PROBE_PORT: probePort, HOST: '127.0.0.1', PROBE_HOST: '127.0.0.1' }),
      }
    }),
  )
  const state = async ({ child, said, probePort }: (typeof services)[number]) => {
    if (child.exitCode !== null) return said.join('')
    return fetch(`http://127.0.0.1:${probePort}/readyz`).then(
      (response) => response.text(),
      () => 'not up',
    )
  }
  for (const service of services) {
    await expect.poll(() => state(service), { timeout: 60_000, message: service.name }).toBe('ok\n')
  }
}, 120_000)

const checkedPathOf = (name: string) =>
  /127\.0\.0\.1:9000(\/[^"]*)/.exec(file.services[name]?.healthcheck?.test.at(-1) ?? '')?.[1]

test('a service is healthy when it is ready; the gateway is it without NATS, too', () => {
  const paths = Object.fromEntries(serviceNames.map((name) => [name, checkedPathOf(name)]))
  const others = { messaging: '/readyz', directory: '/readyz', platform: '/readyz', webhooks: '/readyz' }
  expect(paths).toEqual({ gateway: '/readyz?exclude=nats', ...others })
})

test.each(programs)('%s runs without rights, on a file system that it cannot write', (_name, program) => {
  expect(program).toMatchObject({ read_only: true, cap_drop: ['ALL'] })
})

test.each(programs)('%s runs a file that is there', (_name, { command = [], entrypoint = [] }) => {
  const [script] = [...entrypoint, ...command].filter((word) => word.endsWith('.ts'))
  expect(existsSync(join(image.root, image.workdir, script ?? 'none'))).toBe(true)
})

// A server's image is pulled with the fixes of its version; nobody would write them into the file.
test.each(Object.entries(file.services))('%s has an image of one version', (name, { image }) => {
  expect(image).toMatch(servers.includes(name) ? /^(postgres:\d+|redis:\d+|nats:\d+\.\d+)-alpine$/ : /^\$\{IMAGE:-/)
  expect(dockerfile.match(/^FROM .*$/gm)).toEqual(
    expect.arrayContaining([expect.stringMatching(/^FROM node:\d+\.\d+\.\d+-\S+$/)]),
  )
})

// Docker's own default keeps every line for ever.
test.each(Object.entries(file.services))('%s has a log that does not grow for ever', (_name, { logging }) => {
  expect(logging).toEqual({ driver: 'local' })
})

test('only the gateway is reached from outside, and the servers reach nobody', () => {
  for (const name of servers) expect(file.services[name]?.networks).toEqual(['inside'])
  for (const name of serviceNames) expect(file.services[name]?.depends_on).toHaveProperty('migrate')
})

describe('no service is told what it has no use for', () => {
  const told = (name: string) => Object.values(file.services[name]?.environment ?? {}).join(' ')
  const secretsOf = (name: string) =>
    [...told(name).matchAll(/\$\{(\w*(?:PASSWORD|SEED|KEYS|SECRET|TOKEN)\w*):/g)].map(([, secret = '']) => secret)
  const expected: Record<ServiceName, string[]> = {
    gateway: ['NATS_SEED_GATEWAY', 'UPSTREAM_APP_SECRET', 'UPSTREAM_VERIFY_TOKEN'],
    messaging: ['NATS_SEED_MESSAGING', 'MESSAGING_PASSWORD', 'SEAL_KEYS', 'CURSOR_KEYS', 'UPSTREAM_APP_SECRET'],
    directory: ['NATS_SEED_DIRECTORY', 'DIRECTORY_PASSWORD', 'CURSOR_KEYS'],
    platform: ['NATS_SEED_PLATFORM', 'PLATFORM_PASSWORD', 'SEAL_KEYS', 'CURSOR_KEYS', 'UPSTREAM_APP_SECRET'],
    webhooks: ['NATS_SEED_WEBHOOKS', 'WEBHOOKS_PASSWORD', 'SEAL_KEYS', 'CURSOR_KEYS'],
  }
  test.each(serviceNames)('%s', (name) => {
    expect(secretsOf(name).toSorted()).toEqual(expected[name].toSorted())
  })
})

describe('the image', () => {
  const entries = () => entriesBelow(join(image.root, image.workdir))

  test('is read by everybody, and changed by nobody', () => {
    const [readable, writable] = [0o004, 0o022]
    const unfit = entries().filter((path) => {
      const { mode, uid } = statSync(path)
      return (mode & readable) === 0 || (mode & writable) !== 0 || (isRoot && uid === image.user.uid)
    })
    expect(unfit).toEqual([])
    expect(image.user).toEqual({ uid: 1000, gid: 1000 })
  })

  test('holds no test, no secret, no data, and nothing that only developers need', () => {
    const own = entries()
      .map((path) => relative(join(image.root, image.workdir), path))
      .filter((path) => !path.includes('node_modules/'))
    expect(own).toContain('services/gateway/main.ts')
    expect(own.filter((path) => /\.test\.ts$|\.env$|\.local|\.git|^test|testing|chart|\.pem$/.test(path))).toEqual([])
    const installed = readdirSync(join(image.root, image.workdir, 'node_modules/.pnpm'))
    for (const name of ['vitest', 'typescript', 'oxlint', 'testcontainers', 'kubernetes-models', 'bullmq'])
      expect(installed.filter((one) => one.startsWith(`${name}@`))).toEqual([])
  })
})

test('the image is installed from every package of the workspace', () => {
  const { packages } = z
    .object({ packages: z.array(z.string()) })
    .parse(parse(readFileSync(join(repository, 'pnpm-workspace.yaml'), 'utf8')))
  const folders = packages.flatMap((each) =>
    each === 'services/*' ? serviceNames.map((name) => `services/${name}`) : [each],
  )
  const copied = [...dockerfile.matchAll(/^COPY (\S+)\/package\.json (\S+)\/$/gm)].map(([, from = '']) => from)
  expect(copied.toSorted()).toEqual(folders.toSorted())
})

test('the image has the Node and the pnpm of the repository', () => {
  const { packageManager } = z
    .object({ packageManager: z.string() })
    .parse(JSON.parse(readFileSync(join(repository, 'package.json'), 'utf8')))
  const node = /^ {2}node: (\S+)$/m.exec(readFileSync(join(repository, 'pnpm-workspace.yaml'), 'utf8'))?.[1]
  expect(dockerfile).toContain(`npm install --global ${packageManager}`)
  expect(dockerfile.match(new RegExp(`^FROM node:${node}-`, 'gm'))).toHaveLength(2)
})
