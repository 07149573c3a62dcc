import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseOnce } from '../command-line.ts'
import { dataServices } from '../migration-files.ts'

export const repository = fileURLToPath(new URL('../..', import.meta.url))
export const serviceNames = ['gateway', ...dataServices] as const
export type ServiceName = (typeof serviceNames)[number]

export interface Options {
  /** Absolute. */
  dataDir: string
  port: number
  replicas: Record<ServiceName, number>
  /** Copies of the event stream; more than one needs a cluster of nats-servers. */
  /** Undefined: as many as there are. */
  natsReplicas: number | undefined
  quiet: boolean
}

const usage = 'npm start -- [--replicas messaging=2,webhooks=2] [--quiet]'
const help = `Usage: ${usage}

  --replicas  instances of gateway, messaging, directory, platform, webhooks: one of each unless told otherwise
  --quiet     prints nothing but errors

In the environment:
  PORT                               of the API: 8080
  SVC_DATA_DIR                       the folder of all data: .local
  DATABASE_URL, REDIS_URL, NATS_URL  servers that run already`

/** What `--help` asks for, or null. */
export const helpFor = (args: string[]): string | null =>
  args.some((word) => word === '--help' || word === '-h') ? help : null
const mostReplicas = 16

/** What the command line and the environment ask for. Throws a sentence about what is wrong. */
export function readOptions(args: string[], env: NodeJS.ProcessEnv): Options {
  const { values } = parse(args)
  return {
    dataDir: dataDirOf(env),
    port: readPort(env['PORT'] || '8080'),
    replicas: readReplicas(values.replicas.flatMap((text) => text.split(','))),
    natsReplicas: env['NATS_REPLICAS'] ? readCopies(env['NATS_REPLICAS']) : undefined,
    quiet: values.quiet,
  }
}

/** Where a stack keeps what it must remember: `SVC_DATA_DIR`, or `.local` in the repository. */
export const dataDirOf = (env: NodeJS.ProcessEnv): string => resolve(env['SVC_DATA_DIR'] || `${repository}.local`)

const parse = (args: string[]) =>
  parseOnce(
    {
      args,
      options: {
        replicas: { type: 'string', multiple: true, default: [] as string[] },
        quiet: { type: 'boolean', default: false },
      },
    },
    `\nUsage: ${usage}\nPORT and other settings are in the environment: npm start -- --help`,
  )

function readPort(text: string) {
  const port = Number(text)
  if (!/^\d+$/.test(text) || port < 1 || port > 65_535) throw new Error(`PORT must be 1 to 65535, and is "${text}".`)
  return port
}

/** Of the event stream, as the services read it too. */
export function readCopies(text: string): number {
  if (!/^[1-5]$/.test(text)) throw new Error(`NATS_REPLICAS must be 1 to 5, and is "${text}".`)
  return Number(text)
}

function readReplicas(pairs: string[]): Options['replicas'] {
  const replicas = { gateway: 1, messaging: 1, directory: 1, platform: 1, webhooks: 1 }
  const named = new Set<ServiceName>()
  for (const pair of pairs) {
    const [, name, count = ''] = /^(\w+)=(\d+)$/.exec(pair) ?? []
    const service = serviceNames.find((known) => known === name)
    if (!service || Number(count) < 1 || Number(count) > mostReplicas) {
      throw new Error(
        `--replicas: "${pair}" is not a service and a number from 1 to ${mostReplicas}. ` +
          `Services: ${serviceNames.join(', ')}.\nUsage: ${usage}`,
      )
    }
    if (named.has(service)) throw new Error(`--replicas names ${service} more than once.\nUsage: ${usage}`)
    named.add(service)
    replicas[service] = Number(count)
  }
  return replicas
}
