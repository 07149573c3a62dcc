import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { portFor } from '../processes/ports.ts'
import { supervise } from '../processes/supervise.ts'
import { untilReady } from '../processes/until-ready.ts'
import { startContainer } from './container.ts'
import { findPrograms, versionOf } from './find-program.ts'
import type { Place, Running, ServerKind } from './kind.ts'
import { firstWords } from './probe.ts'

const readyTimeoutMs = 20_000

export const redis: ServerKind = {
  name: 'redis',
  title: 'Redis',
  variable: 'REDIS_URL',
  packages: { debian: 'redis-server', homebrew: 'redis' },
  check: checkRedis,
  find: () => findPrograms(['redis-server', 'valkey-server'])[0],
  startProgram: startRedis,
  startContainer: startRedisContainer,
}

/** `-LOADING …` is not ready yet, `-NOAUTH …` wants the password that the address lacks. */
async function checkRedis(url: string) {
  // Behind TLS the greeting is not ours to speak: the clients will tell.
  if (url.startsWith('rediss:')) return
  const answer = await firstWords(url, 6379, greetingAt(new URL(url)))
  if (isWelcome.test(answer)) return
  const hint = /^-(NOAUTH|WRONGPASS)/.test(answer) ? ' The address names it: redis://:password@host:6379' : ''
  throw new Error(`the server says ${answer.trim().slice(0, 100)}${hint}`)
}

/** A server without a password minds none, and neither does the driver. */
const isWelcome = /^(\+PONG|\+OK|-ERR.*without any password configured)/

function greetingAt({ username, password }: URL) {
  if (password === '') return 'PING\r\n'
  const words = ['AUTH', username, password].filter(Boolean).map(decodeURIComponent)
  return `*${words.length}\r\n${words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join('')}`
}

async function startRedis(program: string, { dataDir, watcher }: Place): Promise<Running> {
  const folder = join(dataDir, 'redis')
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const version = versionOf(program)
  const port = await portFor(dataDir, 'redis')
  const url = `redis://127.0.0.1:${port}`
  // Rate limits alone are kept in it, and losing those costs nothing: so nothing is written to the disk. It wakes up as rarely as
  // it may: what has expired is not there for whoever asks, and its memory can wait.
  const args = [
    '--bind',
    '127.0.0.1',
    '--port',
    String(port),
    '--dir',
    folder,
    '--save',
    '',
    '--appendonly',
    'no',
    '--hz',
    '1',
  ]
  const server = await supervise(
    dataDir,
    { name: 'redis', command: program, args, env: { PATH: process.env['PATH'] }, stopSignal: 'SIGTERM', stopMs: 3_000 },
    watcher,
  )
  await untilReady(server, () => checkRedis(url).then(() => true), readyTimeoutMs)
  return { url, what: `Redis ${version} on port ${port}`, process: server, stop: server.stop }
}

function startRedisContainer({ dataDir, watcher }: Place): Promise<Running> {
  return startContainer(dataDir, watcher, {
    name: 'redis',
    image: 'redis:7-alpine',
    port: 6379,
    command: ['redis-server', '--save', '', '--appendonly', 'no'],
    urlAt: (host, port) => `redis://${host}:${port}`,
    check: checkRedis,
  })
}
