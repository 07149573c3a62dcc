import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { portFor } from '../processes/ports.ts'
import { supervise } from '../processes/supervise.ts'
import { untilReady } from '../processes/until-ready.ts'
import { startContainer } from './container.ts'
import { findPrograms, versionOf } from './find-program.ts'
import { keepJetStream } from './jetstream-guard.ts'
import type { Place, Running, ServerKind } from './kind.ts'
import { firstWords } from './probe.ts'

const readyTimeoutMs = 20_000
const maxPayloadBytes = 8 * 1024 * 1024
const imageVersion = '2.15'

export const nats: ServerKind = {
  name: 'nats',
  title: 'NATS',
  variable: 'NATS_URL',
  packages: { debian: 'nats-server', homebrew: 'nats-server' },
  check: checkNats,
  find: () => findPrograms(['nats-server'])[0],
  startProgram: startNats,
  startContainer: startNatsContainer,
}

/** Any of a cluster will do: the services, too, go on without one of them. */
async function checkNats(urls: string) {
  const checks = urls.split(',').map(checkServer)
  const [first] = checks
  await Promise.any(checks).catch(() => first)
}

/** A server introduces itself, before any login and any TLS, with `INFO {…}`. */
async function checkServer(url: string) {
  const greeting = await firstWords(url, 4222)
  if (!greeting.startsWith('INFO ')) throw new Error('the server does not speak the NATS protocol')
  if (!greeting.includes('"jetstream":true')) throw new Error('the server runs without JetStream (nats-server -js)')
}

async function startNats(program: string, { dataDir, watcher, natsAuthorization }: Place): Promise<Running> {
  const version = versionOf(program)
  const port = await portFor(dataDir, 'nats')
  const monitorPort = await portFor(dataDir, 'nats-monitor')
  const storeFolder = join(dataDir, 'nats')
  const file = writeConfiguration(dataDir, { port, monitorPort, storeFolder, version, natsAuthorization })
  const server = await supervise(
    dataDir,
    {
      name: 'nats',
      command: program,
      args: ['--config', file],
      env: { PATH: process.env['PATH'] },
      stopSignal: 'SIGTERM',
      stopMs: 4_000,
    },
    watcher,
  )
  const monitorUrl = `http://127.0.0.1:${monitorPort}`
  const isHealthy = async () => (await fetch(`${monitorUrl}/healthz`)).ok
  await untilReady(server, isHealthy, readyTimeoutMs)
  const say = (sentence: string) => watcher.onDeath?.(sentence)
  const guard = keepJetStream({ server, monitorUrl, storeFolder, say })
  const stop = () => guard.stop().then(server.stop)
  return { url: `nats://127.0.0.1:${port}`, what: `NATS ${version} on port ${port}`, process: server, stop }
}

interface Listening extends Pick<Place, 'natsAuthorization'> {
  port: number
  monitorPort: number
  storeFolder: string
  version: string
}

/** Beside the store, not in it: a server whose store is deleted is started again with an empty one. */
function writeConfiguration(dataDir: string, listening: Listening) {
  const { port, monitorPort, storeFolder, version, natsAuthorization } = listening
  mkdirSync(storeFolder, { recursive: true, mode: 0o700 })
  const file = join(dataDir, 'nats.conf')
  const own = `# Written at every start.
host: 127.0.0.1
port: ${port}
http: "127.0.0.1:${monitorPort}"
`
  writeFileSync(file, own + configurationOf(storeFolder, version, natsAuthorization), { mode: 0o600 })
  return file
}

/** Without `max_file` a server takes three quarters of what is free, and refuses the stream where that is less than it asks for. */
const configurationOf = (storeFolder: string, version: string, natsAuthorization = '') => `server_name: local
max_payload: ${maxPayloadBytes}
write_deadline: "10s"
max_pending: 256MB
jetstream {
  store_dir: ${JSON.stringify(storeFolder)}
  max_mem: 256MB
  max_file: 20GB
${syncInterval(version)}}
${natsAuthorization}`

/**
 * How often JetStream forces its files onto the disk. What a power cut takes, the outboxes publish again; production
 * says `1s`. Servers before 2.10 refuse the word.
 */
function syncInterval(version: string) {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  return major > 2 || minor >= 10 ? '  sync_interval: "10s"\n' : ''
}

function startNatsContainer({ dataDir, watcher, natsAuthorization }: Place): Promise<Running> {
  const inside = '/data/nats.conf'
  return startContainer(dataDir, watcher, {
    name: 'nats',
    image: `nats:${imageVersion}-alpine`,
    port: 4222,
    command: ['sh', '-c', `printf '%s' "$CONFIGURATION" > ${inside} && exec nats-server --config ${inside}`],
    env: { CONFIGURATION: configurationOf('/data', imageVersion, natsAuthorization) },
    dataFolder: '/data',
    urlAt: (host, port) => `nats://${host}:${port}`,
    check: checkNats,
  })
}
