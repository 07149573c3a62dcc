import { spawn } from 'node:child_process'
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { serviceNames } from '@app/deploy/stack/options.ts'
import { z } from 'zod'
import { freePort } from '../free-port.ts'

const Instance = z.object({ pid: z.number().nullable(), url: z.string(), public_url: z.string().optional() })

/** What the local stack writes down about itself. */
export const Stack = z.object({
  base_url: z.string(),
  api_key: z.string(),
  organization_id: z.string(),
  phone_number_id: z.string(),
  demo_contact: z.object({ id: z.string(), phone_number: z.string() }),
  simulator_url: z.string(),
  postgres_url: z.string(),
  nats_url: z.string(),
  services: z.record(z.string(), z.array(Instance)),
  /** Those that the stack started itself. */
  servers: z.record(z.string(), z.object({ pid: z.number().nullable() })),
})
export type Stack = z.output<typeof Stack>

export interface StartedStack {
  dataDir: string
  /** As the file says now: a service that was started again has another pid. */
  read: () => Stack
  /** Stops everything, as Ctrl-C would; the data stays. */
  stop: () => Promise<void>
  /** Stops, and deletes the data. */
  remove: () => Promise<void>
}

/** So many instances of each service, as `--replicas` takes them. */
export const ofEach = (count: number): string => serviceNames.map((name) => `${name}=${count}`).join(',')

const root = join(import.meta.dirname, '../..')
const readyWithinMs = 100_000

/**
 * Runs the program behind `npm start`, with a data folder, a port and servers of its own, but for those that are given; that of
 * another checkout, if `cwd` is one.
 */
export async function startStack(
  args: string[] = [],
  dataDir = newFolder(),
  given: Record<string, string> = {},
  cwd = root,
): Promise<StartedStack> {
  const env: NodeJS.ProcessEnv = { ...process.env, SVC_DATA_DIR: dataDir, PORT: String(await freePort()) }
  for (const name of ['DATABASE_URL', 'REDIS_URL', 'NATS_URL']) delete env[name]
  Object.assign(env, given)
  const child = spawn(process.execPath, ['deploy/start.ts', '--quiet', ...args], {
    cwd,
    env,
    // By the channel it learns of our death.
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  })
  const output: string[] = []
  child.stdout?.on('data', (chunk: Buffer) => output.push(chunk.toString()))
  child.stderr?.on('data', (chunk: Buffer) => output.push(chunk.toString()))
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))

  const read = () => Stack.parse(JSON.parse(readFileSync(join(dataDir, 'stack.json'), 'utf8')))
  await untilReadable(read, () => child.exitCode !== null).catch((err: unknown) => {
    throw new Error(`The stack did not get ready:\n${output.join('')}\n${faultsIn(dataDir)}`, { cause: err })
  })
  const stop = async () => {
    child.kill('SIGTERM')
    await ended
  }
  return {
    dataDir,
    read,
    stop,
    async remove() {
      await stop()
      rmSync(dataDir, { recursive: true, force: true })
    },
  }
}

async function untilReadable(read: () => Stack, hasEnded: () => boolean) {
  const until = Date.now() + readyWithinMs
  while (Date.now() < until && !hasEnded()) {
    try {
      return read()
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }
  throw new Error(hasEnded() ? 'It ended.' : `It was given ${readyWithinMs / 1_000} s.`)
}

/** What the services complained of, when nobody can look into their logs any more. */
function faultsIn(dataDir: string) {
  const folder = join(dataDir, 'logs')
  if (!existsSync(folder)) return ''
  const linesOf = (name: string) => readFileSync(join(folder, name), 'utf8').split('\n')
  const isFault = (line: string) => /"level":"?(40|50|60|warn|error|fatal)/.test(line)
  return readdirSync(folder)
    .flatMap((name) => linesOf(name).filter(isFault).slice(-10))
    .join('\n')
}

/** For a stack's data. */
export function newFolder() {
  const folder = mkdtempSync(join(tmpdir(), 'messaging-service-stack-'))
  // So that the user whom Postgres runs as may enter it.
  chmodSync(folder, 0o711)
  return folder
}
