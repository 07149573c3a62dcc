import { spawnSync } from 'node:child_process'
import { chownSync, globSync, mkdirSync, realpathSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import connect from 'postgres'
import { portFor } from '../processes/ports.ts'
import { supervise } from '../processes/supervise.ts'
import { untilReady } from '../processes/until-ready.ts'
import { startContainer } from './container.ts'
import { findPrograms, isExecutable, majorOf, versionOf } from './find-program.ts'
import type { Place, Running, ServerKind } from './kind.ts'
import { initialize, locale, locateData, type PostgresData, versionOfData } from './postgres-data.ts'

const oldestMajor = 14
const readyTimeoutMs = 60_000
/** A Unix socket's path ends at 107 bytes, and the server adds `/.s.PGSQL.65535.lock` to its folder. */
const longestSocketFolder = 107 - '/.s.PGSQL.65535.lock'.length

// Debian, Red Hat, Homebrew on both kinds of Mac, Postgres.app: none of them puts the server on the PATH.
const installations = [
  '/usr/lib/postgresql/*/bin',
  '/usr/pgsql-*/bin',
  '/opt/homebrew/opt/postgresql*/bin',
  '/usr/local/opt/postgresql*/bin',
  '/Applications/Postgres.app/Contents/Versions/*/bin',
]

export const postgres: ServerKind = {
  name: 'postgres',
  title: 'Postgres',
  variable: 'DATABASE_URL',
  packages: { debian: 'postgresql', homebrew: 'postgresql@17' },
  check: checkPostgres,
  find: findPostgres,
  startProgram: startPostgres,
  startContainer: startPostgresContainer,
}

async function checkPostgres(url: string) {
  const sql = connect(url, { max: 1, connect_timeout: 10, fetch_types: false, onnotice: () => {} })
  try {
    await sql`select 1`
  } finally {
    await sql.end({ timeout: 1 })
  }
}

/** The newest that is new enough; for data that is there already, the newest of the version that made it. */
function findPostgres(dataDir: string) {
  const made = versionOfData(locateData(dataDir))
  // A link on the PATH may stand alone: initdb is beside the program itself.
  const programs = findPrograms(['postgres'], globSync(installations)).map((program) => realpathSync(program))
  const fit = [...new Set(programs)]
    .filter((program) => isExecutable(join(dirname(program), 'initdb')))
    .map((program) => ({ program, major: majorOf(versionOf(program)) }))
    .filter(({ major }) => major >= oldestMajor)
    .toSorted((a, b) => b.major - a.major)
  const [newest] = fit
  const match = made === undefined ? newest : fit.find(({ major }) => major === Number(made))
  if (newest && !match) {
    throw new Error(
      `The data in ${dataDir} was made by Postgres ${made}, and this machine has ${newest.major}. ` +
        `Install Postgres ${made}, or set SVC_DATA_DIR to a new folder.`,
    )
  }
  return match?.program
}

async function startPostgres(program: string, { dataDir, watcher, isDurable = true }: Place): Promise<Running> {
  const data = locateData(dataDir)
  if (versionOfData(data) === undefined) initialize(data, program)
  const version = versionOf(program)
  const port = await portFor(dataDir, 'postgres')
  const url = `postgres://postgres:${data.password}@127.0.0.1:${port}/postgres`
  const compression = isDurable ? logCompression(program, data) : 'off'
  const settings = settingsFor(port, socketFolder(data), isDurable, compression).flatMap((setting) => ['-c', setting])
  const server = await supervise(
    dataDir,
    {
      name: 'postgres',
      command: program,
      args: ['-D', data.cluster, ...settings],
      env: { PATH: process.env['PATH'], TZ: 'UTC', LC_ALL: 'C' },
      cwd: data.home,
      user: data.account,
      // SIGINT ends the sessions at once; at SIGTERM the server would wait for its clients to leave.
      stopSignal: 'SIGINT',
      stopMs: 5_000,
    },
    watcher,
  )
  await untilReady(server, () => checkPostgres(url).then(() => true), readyTimeoutMs)
  return {
    url,
    what: `Postgres ${version} on port ${port}`,
    process: server,
    stop: server.stop,
    removeData: data.isElsewhere ? () => rmSync(data.home, { recursive: true, force: true }) : undefined,
  }
}

/**
 * Of whole pages in the write-ahead log, as each has to stand there once after a checkpoint. Not every build has `lz4`; the one that all
 * have takes some 80 µs a page, `lz4` a sixth of it (an update of each page of a table: 4 times the time of none, 1.5 times).
 */
function logCompression(program: string, { cluster }: PostgresData) {
  const asked = ['-D', cluster, '-C', 'wal_compression', '-c', 'wal_compression=lz4']
  return spawnSync(program, asked, { stdio: 'ignore' }).status === 0 ? 'lz4' : 'off'
}

function settingsFor(port: number, socketFolder: string, isDurable: boolean, compression: string) {
  return [
    'listen_addresses=127.0.0.1',
    `port=${port}`,
    // In quotes, for a comma would end it.
    `unix_socket_directories=${socketFolder && `"${socketFolder.replaceAll('"', '""')}"`}`,
    'max_connections=200',
    'shared_buffers=256MB',
    // An answer is given after its commit, so a commit must be on the disk, and a page that was half written must be whole again.
    ...['fsync', 'full_page_writes'].map((setting) => `${setting}=${isDurable ? 'on' : 'off'}`),
    `wal_compression=${compression}`,
    'synchronous_commit=on',
    // No replicas here: the least write-ahead log, and at most this much of it to read again after a crash.
    'wal_level=minimal',
    'max_wal_senders=0',
    'max_wal_size=1GB',
    'checkpoint_timeout=2min',
    // After a crash one call for the whole disk, instead of one for each file.
    ...(process.platform === 'linux' ? ['recovery_init_sync_method=syncfs'] : []),
    // Queues: the rows die young.
    'autovacuum_naptime=10s',
    'random_page_cost=1.1',
    'jit=off',
    'log_lock_waits=on',
    'log_checkpoints=off',
    // Else the detail of an error shows the row, and with it what people wrote.
    'log_error_verbosity=terse',
    'log_line_prefix=%m [%p] %u ',
  ]
}

/** For people with psql at hand; empty, which means none, where the path is too long for a socket. */
function socketFolder({ home, account }: PostgresData) {
  const folder = join(home, 'socket')
  if (Buffer.byteLength(folder) > longestSocketFolder) return ''
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  if (account) chownSync(folder, account.uid, account.gid)
  return folder
}

async function startPostgresContainer({ dataDir, watcher }: Place): Promise<Running> {
  const { password } = locateData(dataDir)
  const settings = ['max_connections=200', 'shared_buffers=256MB', 'jit=off', 'log_error_verbosity=terse'].flatMap(
    (setting) => ['-c', setting],
  )
  return startContainer(dataDir, watcher, {
    name: 'postgres',
    image: 'postgres:17-alpine',
    port: 5432,
    command: ['postgres', ...settings],
    env: { POSTGRES_PASSWORD: password, POSTGRES_INITDB_ARGS: locale.join(' ') },
    dataFolder: '/var/lib/postgresql/data',
    urlAt: (host, port) => `postgres://postgres:${password}@${host}:${port}/postgres`,
    check: checkPostgres,
  })
}
