import type { Supervised, Watcher } from '../processes/supervise.ts'
import { claimFolder, releaseFolder } from '../processes/claim.ts'
import { sentenceOf } from '../command.ts'
import { secondsSince } from '../progress.ts'
import { hasDocker } from './container.ts'
import { canInstall, installPackages } from './debian.ts'
import type { Place, Running, ServerKind, ServerName } from './kind.ts'
import { nats } from './nats.ts'
import { postgres } from './postgres.ts'
import { redis } from './redis.ts'

export interface Servers {
  /** Logs in as one who may create roles, schemas and databases. Empty when the server was not asked for, as are the others. */
  postgresUrl: string
  redisUrl: string
  natsUrl: string
  /** Those that we started; they are started again when they die. */
  processes: Supervised[]
  /** Servers that were given by an address are left alone. */
  stop: () => Promise<void>
}

export interface ServersWanted {
  /** Keeps the data and logs. One process at a time may use it. An absolute path. */
  dataDir: string
  /** A line for each server that is ready, and one before anything that takes long. */
  log: (line: string) => void
  /** All three, unless told otherwise. */
  only?: ServerName[] | undefined
  /** Deletes at `stop` also what had to be put outside the data folder, for one that will be deleted. */
  temporary?: boolean | undefined
  watcher?: Watcher | undefined
  natsAuthorization?: string | undefined
  /** False for tests, which end no machine: databases are made and dropped for each of their files. */
  isDurable?: boolean | undefined
}

const kinds = [postgres, redis, nats]

/**
 * Finds or starts what the services need: a server that `DATABASE_URL`, `REDIS_URL`, `NATS_URL` name; else a program of
 * this machine, on a free port of the loopback address; else a container; else, as root on Debian, a package is
 * installed. Rejects with a sentence that says what to install.
 */
export async function startServers(wishes: ServersWanted): Promise<Servers> {
  const { dataDir, log, only, temporary, watcher = {}, natsAuthorization, isDurable } = wishes
  // Who had it before may run more in it than the servers.
  const releases = claimFolder(dataDir)
  const wanted = kinds.filter(({ name }) => only?.includes(name) ?? true)
  const place = { dataDir, watcher, natsAuthorization, isDurable }
  const starts = await waysToStart(wanted, place, log)
  const results = await Promise.allSettled(starts.map((start) => withLine(start, log)))
  const running = new Map<ServerName, Running>()
  for (const [n, { name }] of wanted.entries()) {
    const result = results[n]
    if (result?.status === 'fulfilled') running.set(name, result.value)
  }

  async function stop() {
    await Promise.all([...running.values()].map((server) => server.stop()))
    if (temporary) for (const server of running.values()) server.removeData?.()
    if (releases) releaseFolder(dataDir)
  }
  const failed = results.find((result) => result.status === 'rejected')
  if (failed) {
    await stop()
    throw failed.reason
  }
  return {
    postgresUrl: running.get('postgres')?.url ?? '',
    redisUrl: running.get('redis')?.url ?? '',
    natsUrl: running.get('nats')?.url ?? '',
    processes: [...running.values()].flatMap((server) => server.process ?? []),
    stop,
  }
}

type Start = () => Promise<Running>

async function withLine(start: Start, log: (line: string) => void) {
  const startedAt = performance.now()
  const running = await start()
  log(`✓ ${running.what} (${secondsSince(startedAt)} s)`)
  return running
}

/** For each server the first way that this machine offers. What is missing is looked for together, so that it is installed at once. */
async function waysToStart(wanted: ServerKind[], place: Place, log: (line: string) => void): Promise<Start[]> {
  const missing = wanted.filter((kind) => !findWay(kind, place))
  const inContainers = missing.length > 0 && (await hasDocker())
  if (inContainers) log(`Starting ${titlesOf(missing)} in Docker; the first time, the images are fetched …`)
  else if (missing.length > 0) install(missing, log)
  return wanted.map((kind) => {
    const way = findWay(kind, place)
    if (way) return way
    if (inContainers) return () => kind.startContainer(place)
    throw new Error(whatToInstall([kind]))
  })
}

function findWay(kind: ServerKind, place: Place): Start | undefined {
  const given = process.env[kind.variable]
  if (given) return () => useGiven(kind, given)
  const program = kind.find(place.dataDir)
  return program === undefined ? undefined : () => kind.startProgram(program, place)
}

async function useGiven({ title, variable, check }: ServerKind, url: string): Promise<Running> {
  try {
    await check(url)
  } catch (err) {
    throw new Error(`The ${title} that ${variable} names does not answer as it should: ${sentenceOf(err)}`, {
      cause: err,
    })
  }
  return { url, what: `${title} of ${variable}`, stop: async () => {} }
}

function install(missing: ServerKind[], log: (line: string) => void) {
  if (!canInstall() || process.env['SVC_NO_INSTALL'] === '1') throw new Error(whatToInstall(missing))
  const packages = missing.map((kind) => kind.packages.debian)
  log(`Installing ${packages.join(', ')} with apt-get (SVC_NO_INSTALL=1 refuses) …`)
  installPackages(packages)
}

function whatToInstall(missing: ServerKind[]) {
  const packages = (name: 'debian' | 'homebrew') => missing.map((kind) => kind.packages[name]).join(' ')
  return `${titlesOf(missing)} not found on this machine. Do one of these, and start again:
  install ${missing.length > 1 ? 'them' : 'it'}: apt-get install ${packages('debian')}   or   brew install ${packages('homebrew')}
  start Docker
  point ${missing.map((kind) => kind.variable).join(', ')} to servers that run already`
}

const titlesOf = (some: ServerKind[]) => some.map((kind) => kind.title).join(', ')
