import { isIP } from 'node:net'
import { join } from 'node:path'
import { portFor } from '../processes/ports.ts'
import type { Program } from '../processes/supervise.ts'
import { urlOfService } from '../roles.ts'
import type { Servers } from '../servers/start-servers.ts'
import { type Options, repository, type ServiceName, serviceNames } from './options.ts'
import { natsSeedOf, passwordsOf, type Secrets } from './secrets.ts'

/** Where we reach what listens at the address of that setting: by default, and with all addresses of the machine, at loopback. */
export function originOf(setting: 'HOST' | 'PROBE_HOST', port: number): string {
  const host = process.env[setting] ?? ''
  const url = `http://${isIP(host) === 6 ? `[${host}]` : host}:${port}`
  const isOne = isIP(host) !== 0 && URL.canParse(url) && !['0.0.0.0', '[::]'].includes(new URL(url).hostname)
  return isOne ? url : `http://127.0.0.1:${port}`
}

/** What every program of the stack is told. */
export interface Setup {
  options: Options
  secrets: Secrets
  servers: Servers
  publicUrl: string
  simulatorUrl: string
}

/** One instance of a service. */
export interface Instance {
  service: ServiceName
  program: Program
  /** Where its probes and metrics are. */
  url: string
  /** Where a gateway's public API is. */
  publicUrl?: string
}

/** Longer than a service needs to end in order, short enough for the stack to end within 25 s. */
const stopMs = { gateway: 9_000, service: 8_000, simulator: 1_500 }

export async function instancesOf(setup: Setup): Promise<Instance[]> {
  const instances: Instance[] = []
  for (const service of serviceNames) {
    const count = setup.options.replicas[service]
    for (let n = 1; n <= count; n++) instances.push(await instanceOf(setup, service, n, count))
  }
  return instances
}

async function instanceOf(setup: Setup, service: ServiceName, n: number, count: number): Promise<Instance> {
  const { options, servers } = setup
  const name = count === 1 ? service : `${service}-${n}`
  const probePort = await portFor(options.dataDir, `${service}-${n}-probe`)
  // The first has the port that was asked for; no two can share one.
  const port = n === 1 ? options.port : await portFor(options.dataDir, `${service}-${n}`)
  const own =
    service === 'gateway'
      ? { PORT: String(port), REDIS_URL: servers.redisUrl }
      : { DATABASE_URL: urlOfService(servers.postgresUrl, service, passwordsOf(setup.secrets)[service]) }
  const seed = natsSeedOf(setup.secrets, service)
  const natsSeed = seed === undefined ? {} : { NATS_NKEY_SEED: seed }
  return {
    service,
    url: originOf('PROBE_HOST', probePort),
    ...(service === 'gateway' && { publicUrl: originOf('HOST', port) }),
    program: {
      ...nodeProgram(name, `services/${service}/main.ts`),
      env: { ...environmentOf(setup), ...natsSeed, ...own, PROBE_PORT: String(probePort) },
      stopMs: service === 'gateway' ? stopMs.gateway : stopMs.service,
    },
  }
}

/** The stand-in for the upstream platform. */
export function simulatorProgram(setup: Omit<Setup, 'servers'>): Program {
  const { options, publicUrl, simulatorUrl } = setup
  return {
    ...nodeProgram('simulator', 'test/simulator/main.ts'),
    env: {
      ...passedOn(),
      ...upstreamEnvironment(setup.secrets),
      PORT: new URL(simulatorUrl).port,
      CALLBACK_URL: `${publicUrl}/upstream/callbacks`,
      DATA_FILE: join(options.dataDir, 'simulator.json'),
    },
    stopMs: stopMs.simulator,
  }
}

function environmentOf({ options, secrets, servers, publicUrl, simulatorUrl }: Setup): NodeJS.ProcessEnv {
  return {
    // A receiver of webhooks is often next door; a self-hoster may name another network.
    EGRESS_ALLOW_CIDRS: '127.0.0.0/8,::1/128',
    LOG_LEVEL: 'info',
    // As in the image.
    MALLOC_ARENA_MAX: '1',
    MALLOC_MMAP_THRESHOLD_: '524288',
    NODE_OPTIONS: '--max-semi-space-size=8',
    ...passedOn(),
    ...upstreamEnvironment(secrets),
    NATS_URL: servers.natsUrl,
    PUBLIC_URL: publicUrl,
    SEAL_KEYS: secrets.sealKeys,
    CURSOR_KEYS: secrets.cursorKeys,
    UPSTREAM_BASE_URL: simulatorUrl,
    UPSTREAM_API_VERSION: 'v23.0',
    UPSTREAM_SIGNUP_CONFIG_ID: 'simulated',
    UPSTREAM_DIALOG_URL: `${simulatorUrl}/signup/sdk.js`,
    UPSTREAM_DIALOG_ORIGINS: simulatorUrl,
    MEDIA_DIR: join(options.dataDir, 'media'),
  }
}

const upstreamEnvironment = (secrets: Secrets) => ({
  UPSTREAM_APP_ID: secrets.upstreamAppId,
  UPSTREAM_APP_SECRET: secrets.upstreamAppSecret,
  UPSTREAM_VERIFY_TOKEN: secrets.upstreamVerifyToken,
})

/** Our own environment, so that a service's other settings can be given to `npm start`, without what is meant for us alone. */
function passedOn(): NodeJS.ProcessEnv {
  const ours = /^(DATABASE_URL|REDIS_URL|NATS_URL|NATS_NKEY_SEED|NATS_SEED_.*|PORT|SVC_.*|npm_.*|INIT_CWD)$/
  // Shells and tools export HOST, too: the name of the machine, or of what it was built for. An address is meant for us.
  const isOthers = (name: string, value = '') => ours.test(name) || (name === 'HOST' && isIP(value) === 0)
  return Object.fromEntries(Object.entries(process.env).filter(([name, value]) => !isOthers(name, value)))
}

const nodeProgram = (name: string, main: string) =>
  ({
    name,
    command: process.execPath,
    args: ['--import', join(repository, 'deploy/processes/leash.ts'), join(repository, main)],
    cwd: repository,
    stopSignal: 'SIGTERM',
    leashed: true,
  }) as const
