import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { isClaim } from '@app/deploy/processes/claim.ts'
import { findRecorded, recordedNames } from '@app/deploy/processes/records.ts'
import { repository } from '@app/deploy/stack/options.ts'
import { z } from 'zod'
import { until } from './until.ts'

/** Null while a process that died is not started again yet. */
const pid = z.int().nullable()

/** `stack.json`, as far as the bench reads it. */
const stackFile = z.object({
  base_url: z.string(),
  api_key: z.string(),
  organization_id: z.string(),
  phone_number_id: z.string(),
  simulator_url: z.string(),
  postgres_url: z.string(),
  nats_url: z.string(),
  nats_nkey_seed: z.string().nullable(),
  services: z.record(z.string(), z.array(z.object({ pid, url: z.string() }))),
  servers: z.record(z.string(), z.object({ pid })),
})
export type StackFile = z.infer<typeof stackFile>

export interface RunningStack {
  file: StackFile
  /** From the command to its being ready. */
  startedInMs: number
  /** Services and servers that ended by themselves since then. */
  died: () => string[]
  stop: () => Promise<void>
}

const startTimeoutMs = 120_000
const stopTimeoutMs = 30_000

/** The two ways to start: as a user does, and without npm, so that the stack ends when the bench is killed. */
const commands = {
  npm: { command: 'npm', args: ['start', '--silent', '--', '--quiet'] },
  node: { command: process.execPath, args: [join(repository, 'deploy/start.ts'), '--quiet'] },
}

export interface StackPlace {
  dataDir: string
  port: number
  /** Where each process of the stack leaves a CPU profile when it ends. */
  profiles?: string | undefined
}

/** Starts the whole local stack and waits until it is ready. */
export async function startStack(place: StackPlace, way: keyof typeof commands = 'node'): Promise<RunningStack> {
  const { command, args } = commands[way]
  const startedAt = performance.now()
  const child = spawn(command, args, {
    cwd: repository,
    env: environment(place),
    stdio: way === 'node' ? ['ignore', 'inherit', 'inherit', 'ipc'] : ['ignore', 'inherit', 'inherit'],
    // Its own group, so that a Ctrl-C reaches the bench alone, which stops things in order.
    detached: true,
  })
  const file = await untilReady(child, place.dataDir)
  return {
    file,
    startedInMs: performance.now() - startedAt,
    died: () => changedPids(file, readStackFile(place.dataDir)),
    stop: () => stop(child, place.dataDir),
  }
}

function changedPids(before: StackFile, now: StackFile | undefined) {
  if (!now) return ['the stack']
  const pids = ({ services, servers }: StackFile) => ({
    ...Object.fromEntries(Object.entries(services).map(([name, all]) => [name, all.map((one) => one.pid).join()])),
    ...Object.fromEntries(Object.entries(servers).map(([name, server]) => [name, String(server.pid)])),
  })
  const after = pids(now)
  return Object.entries(pids(before)).flatMap(([name, text]) => (after[name] === text ? [] : [name]))
}

/** Servers named in the environment are not used: what is measured here should not meet another's data. */
function environment({ dataDir, port, profiles }: StackPlace): NodeJS.ProcessEnv {
  const ours = /^(DATABASE_URL|REDIS_URL|NATS_URL|NODE_OPTIONS|npm_.*)$/
  return {
    ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !ours.test(name))),
    SVC_DATA_DIR: dataDir,
    PORT: String(port),
    ...(profiles !== undefined && { NODE_OPTIONS: `--cpu-prof --cpu-prof-dir=${profiles}` }),
  }
}

async function untilReady(child: ChildProcess, dataDir: string) {
  const endsAt = performance.now() + startTimeoutMs
  while (performance.now() < endsAt) {
    if (child.exitCode !== null || child.signalCode !== null) throw new Error('The stack did not start, see above.')
    const file = readStackFile(dataDir)
    if (file) return file
    await sleep(10)
  }
  await stop(child, dataDir)
  throw new Error(`The stack was not ready within ${startTimeoutMs / 1000} s.`)
}

/** Undefined until the stack is ready: the file is written then, and removed by a start. */
function readStackFile(dataDir: string): StackFile | undefined {
  try {
    return stackFile.parse(JSON.parse(readFileSync(join(dataDir, 'stack.json'), 'utf8')))
  } catch (err) {
    if (err instanceof z.ZodError) throw err
    return undefined
  }
}

async function stop(child: ChildProcess, dataDir: string) {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
  process.kill(-child.pid, 'SIGTERM')
  // npm ends at once; the stack is down when its folder is given back.
  const owner = recordedNames(dataDir).find(isClaim) ?? ''
  await until('the stack is down', async () => findRecorded(dataDir, owner) === undefined, stopTimeoutMs, 20)
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
}
