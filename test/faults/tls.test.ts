import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { portFor } from '@app/deploy/processes/ports.ts'
import { runProgram } from '@app/deploy/processes/run-program.ts'
import { findPrograms } from '@app/deploy/servers/find-program.ts'
import { nats as natsServer } from '@app/deploy/servers/nats.ts'
import { postgres as postgresServer } from '@app/deploy/servers/postgres.ts'
import { redis as redisServer } from '@app/deploy/servers/redis.ts'
import postgres, { type Sql } from 'postgres'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { clientOf, until } from '../journeys/client.ts'
import { type Receiver, startReceiver } from '../journeys/receiver.ts'
import { newFolder, type StartedStack, startStack } from '../journeys/start-stack.ts'
import { startPrivateServers } from '../servers.ts'

/** Postgres, Redis and NATS as others run them: they speak TLS, with certificates of an authority of their own. */

const folder = newFolder()
const file = (name: string) => join(folder, name)
const redisPassword = 'a password of its own'
const programs: ChildProcess[] = []
let servers: Awaited<ReturnType<typeof startPrivateServers>>
let sql: Sql
let receiver: Receiver
let stack: StartedStack | undefined

const isHere = [postgresServer, redisServer, natsServer].every((kind) => kind.find(folder) !== undefined)

function openssl(...args: string[]) {
  const { status, stderr } = runProgram('openssl', args, { cwd: folder })
  if (status !== 0) throw new Error(`openssl ${args.join(' ')}: ${stderr}`)
}

/** `server.crt` and `server.key`, for `localhost`, signed by `ca.pem`. */
function makeCertificates() {
  const newKey = ['-newkey', 'rsa:2048', '-nodes']
  openssl('req', '-x509', ...newKey, '-keyout', 'ca.key', '-out', 'ca.pem', '-subj', '/CN=An authority', '-days', '2')
  openssl('req', ...newKey, '-keyout', 'server.key', '-out', 'server.csr', '-subj', '/CN=localhost')
  writeFileSync(file('names'), 'subjectAltName = DNS:localhost')
  const signed = ['-req', '-in', 'server.csr', '-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial', '-days', '2']
  openssl('x509', ...signed, '-extfile', 'names', '-out', 'server.crt')
}

/** Postgres finds both beside its data, and reads them when it is told to read its settings. */
async function speakTls(admin: Sql) {
  const [row] = await admin<{ path: string }[]>`select current_setting('data_directory') as path`
  const path = row?.path ?? ''
  const { uid, gid } = statSync(path)
  for (const name of ['server.crt', 'server.key']) {
    writeFileSync(join(path, name), await readFile(file(name)))
    chownSync(join(path, name), uid, gid)
    chmodSync(join(path, name), 0o600)
  }
  await admin`alter system set ssl = on`
  await admin`select pg_reload_conf()`
}

async function startRedis() {
  const port = await portFor(folder, 'redis')
  const certificates = ['--tls-cert-file', file('server.crt'), '--tls-key-file', file('server.key')]
  const tls = ['--port', '0', '--tls-port', String(port), ...certificates, '--tls-auth-clients', 'no']
  await start('redis-server', [...tls, '--requirepass', redisPassword, '--save', ''], port)
  return `rediss://:${encodeURIComponent(redisPassword)}@localhost:${port}`
}

async function startNats() {
  const port = await portFor(folder, 'nats')
  const tls = { cert_file: file('server.crt'), key_file: file('server.key') }
  mkdirSync(file('jetstream'))
  const settings = {
    port,
    host: '127.0.0.1',
    max_payload: 8 * 1024 * 1024,
    jetstream: { store_dir: file('jetstream') },
    tls,
  }
  writeFileSync(file('nats.conf'), JSON.stringify(settings))
  await start('nats-server', ['--config', file('nats.conf')], port)
  return `nats://localhost:${port}`
}

/** Answers once something listens. */
async function start(name: string, args: string[], port: number) {
  const [program] = findPrograms([name])
  if (program === undefined) throw new Error(`${name} was not found`)
  programs.push(spawn(program, args, { stdio: 'ignore' }))
  await until(async () => {
    const socket = connect(port, '127.0.0.1')
    await once(socket, 'connect').finally(() => socket.destroy())
  })
}

const sessions = () => sql<{ pid: number; ssl: boolean }[]>`
  select pid, ssl from pg_stat_ssl join pg_stat_activity using (pid) where usename like 'svc_%'
`

/** A container's files are not ours to give it certificates. */
describe.skipIf(!isHere)('with programs of this machine', () => {
  beforeAll(async () => {
    makeCertificates()
    servers = await startPrivateServers(file('servers'), ['postgres'])
    sql = postgres(servers.postgresUrl, { max: 1, onnotice: () => {} })
    await speakTls(sql)
    const url = new URL(servers.postgresUrl)
    url.hostname = 'localhost'
    url.searchParams.set('sslmode', 'verify-full')
    receiver = await startReceiver()
    stack = await startStack([], file('stack'), {
      DATABASE_URL: url.href,
      REDIS_URL: await startRedis(),
      NATS_URL: await startNats(),
      NODE_EXTRA_CA_CERTS: file('ca.pem'),
    })
  })
  afterAll(async () => {
    await stack?.remove()
    receiver.close()
    for (const program of programs) program.kill('SIGKILL')
    await sql.end()
    await servers.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  test('servers that speak TLS are spoken with, and again after all sessions were broken off', async () => {
    if (!stack) throw new Error('no stack')
    const { api, sendText } = clientOf(stack.read())
    const body = { url: receiver.url, events: ['message.sent'] }
    expect((await api('POST', '/webhook_subscriptions', { body })).status).toBe(201)
    const accepted: string[] = []
    const send = async (text: string) => {
      const { status, body: answer } = await sendText(text, { headers: { 'idempotency-key': text } })
      expect(status).toBe(200)
      accepted.push(answer.data.id)
    }
    await send('before')
    const before = await sessions()
    expect(before.length).toBeGreaterThanOrEqual(4)
    expect(before.filter(({ ssl }) => !ssl)).toEqual([])

    await sql`select pg_terminate_backend(pid) from unnest(${before.map(({ pid }) => pid)}::int[]) pid`
    await until(() => send('after'))
    await until(() => {
      const told = new Set<string>(receiver.of('message.sent').map(({ body: event }) => event.data.message.id))
      expect(told).toEqual(new Set(accepted))
    })
    expect((await sessions()).filter(({ ssl }) => !ssl)).toEqual([])
  })
})
