import { once } from 'node:events'
import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import postgres from 'postgres'
import { afterAll, afterEach, expect, onTestFinished, test, vi } from 'vitest'
import { claimFolder, releaseFolder } from '../processes/claim.ts'
import { findRecorded, recordedNames } from '../processes/records.ts'
import { nats } from './nats.ts'
import { firstWords } from './probe.ts'
import { startServers } from './start-servers.ts'

const dataDir = mkdtempSync(join(tmpdir(), 'servers-'))
const log = () => {}
afterAll(() => rmSync(dataDir, { recursive: true }))
afterEach(() => vi.unstubAllEnvs())

async function asked<T>(url: string, run: (sql: postgres.Sql) => Promise<T>) {
  const sql = postgres(url, { max: 1, onnotice: () => {} })
  try {
    return await run(sql)
  } finally {
    await sql.end()
  }
}

test('starts servers that keep their data and their addresses over restarts', async () => {
  const first = await startServers({ dataDir, log })
  await asked(first.postgresUrl, (sql) => sql`create table kept as select 42 as answer`)
  await first.stop()

  const second = await startServers({ dataDir, log, temporary: true })
  expect(second).toMatchObject({ postgresUrl: first.postgresUrl, redisUrl: first.redisUrl, natsUrl: first.natsUrl })
  expect(await asked(second.postgresUrl, (sql) => sql`select answer from kept`)).toEqual([{ answer: 42 }])
  expect(await firstWords(second.redisUrl, 0, 'PING\r\n')).toBe('+PONG\r\n')
  const introduction = await firstWords(second.natsUrl, 0)
  expect(introduction).toContain('"jetstream":true')
  expect(introduction).toContain('"max_payload":8388608')
  // They listen at one address of this machine, which no other machine reaches.
  for (const url of [second.postgresUrl, second.redisUrl, second.natsUrl])
    await expect(firstWords(url.replace('127.0.0.1', '127.0.0.2'), 0, 'PING\r\n')).rejects.toThrow()
  await second.stop()
})

test('makes a database that sorts by bytes, waits for the disk and shows no row in its log', async () => {
  const servers = await startServers({ dataDir: join(dataDir, 'other'), log, only: ['postgres'], temporary: true })
  const [row] = await asked(
    servers.postgresUrl,
    (sql) => sql`
      select datcollate, pg_encoding_to_char(encoding) as encoding, current_setting('fsync') as fsync,
        current_setting('log_error_verbosity') as verbosity
      from pg_database where datname = current_database()
    `,
  )
  expect(row).toEqual({ datcollate: 'C', encoding: 'UTF8', fsync: 'on', verbosity: 'terse' })
  const url = new URL(servers.postgresUrl)
  url.password = 'wrong'
  await expect(asked(url.href, (sql) => sql`select 1`)).rejects.toThrow('password authentication failed')
  await servers.stop()
})

test('makes a database whatever the umask and the name of the folder', async () => {
  const usual = process.umask(0o077)
  onTestFinished(() => void process.umask(usual))
  // As it was made before, by a user without such a umask.
  const folder = join(dataDir, 'a "folder", or two')
  mkdirSync(folder)
  chmodSync(folder, 0o755)
  chmodSync(dataDir, 0o755)
  const servers = await startServers({ dataDir: folder, log, only: ['postgres'], temporary: true })
  expect(await asked(servers.postgresUrl, (sql) => sql`select 1 as one`)).toEqual([{ one: 1 }])
  await servers.stop()
})

test.each([
  ['DATABASE_URL', 'postgres', 'postgres://user:hidden@127.0.0.1:1/x'],
  ['REDIS_URL', 'redis', 'redis://:hidden@127.0.0.1:1'],
  ['NATS_URL', 'nats', 'nats://127.0.0.1:1'],
] as const)('uses what %s names, and says so when nobody answers there', async (variable, name, url) => {
  vi.stubEnv(variable, url)
  const starting = startServers({ dataDir: join(dataDir, name), log, only: [name] })
  await expect(starting).rejects.toThrow(new RegExp(`that ${variable} names does not answer`))
  await expect(starting).rejects.not.toThrow(/hidden/)
})

test('a folder that its caller has claimed is still claimed when a server fails', async () => {
  const folder = join(dataDir, 'claimed')
  vi.stubEnv('REDIS_URL', 'redis://127.0.0.1:1')
  claimFolder(folder)
  await expect(startServers({ dataDir: folder, log, only: ['redis'] })).rejects.toThrow('REDIS_URL')
  expect(findRecorded(folder, 'owner')).toBe(process.pid)
  releaseFolder(folder)
  expect(findRecorded(folder, 'owner')).toBeUndefined()
})

test('what has started ends, and the folder is free, when another server fails', async () => {
  const folder = join(dataDir, 'failed')
  vi.stubEnv('NATS_URL', 'nats://127.0.0.1:1')
  await expect(startServers({ dataDir: folder, log, only: ['redis', 'nats'] })).rejects.toThrow('NATS_URL')
  expect(recordedNames(folder)).toEqual([])
})

test('a Redis with a password is taken only with the right one', async () => {
  const own = await startServers({ dataDir: join(dataDir, 'locked'), log, only: ['redis'], temporary: true })
  onTestFinished(() => own.stop())
  const startAt = (login: string) => {
    vi.stubEnv('REDIS_URL', own.redisUrl.replace('//', `//${login}`))
    return startServers({ dataDir: join(dataDir, 'unlocked'), log, only: ['redis'] }).then((given) => given.stop())
  }
  // Without a password of its own it minds none.
  await startAt(':needless@')
  expect(await firstWords(own.redisUrl, 0, 'CONFIG SET requirepass "a b"\r\n')).toBe('+OK\r\n')
  await startAt(':a%20b@')
  await startAt('default:a%20b@')
  await expect(startAt('')).rejects.toThrow(/NOAUTH.* The address names it: redis:/)
  await expect(startAt(':wrong@')).rejects.toThrow(/WRONGPASS.* The address names it: redis:/)
})

test('leaves a server that was named alone', async () => {
  const own = await startServers({ dataDir: join(dataDir, 'own'), log, only: ['redis'] })
  vi.stubEnv('REDIS_URL', own.redisUrl)
  const given = await startServers({ dataDir: join(dataDir, 'given'), log, only: ['redis'] })
  expect(given).toMatchObject({ redisUrl: own.redisUrl, postgresUrl: '', natsUrl: '', processes: [] })
  await given.stop()
  expect(await firstWords(own.redisUrl, 0, 'PING\r\n')).toBe('+PONG\r\n')
  await own.stop()
})

test('a cluster of nats-servers is there when one of them answers', async () => {
  const own = await startServers({ dataDir: join(dataDir, 'own-nats'), log, only: ['nats'] })
  const urls = `nats://127.0.0.1:1,${own.natsUrl}`
  vi.stubEnv('NATS_URL', urls)
  const given = await startServers({ dataDir: join(dataDir, 'given-nats'), log, only: ['nats'] })
  expect(given.natsUrl).toBe(urls)
  await given.stop()
  await own.stop()
})

test('a given nats-server without JetStream is refused', async () => {
  const server = createServer((socket) => socket.end('INFO {"server_id":"x","version":"2.12.0","headers":true}\r\n'))
  onTestFinished(() => void server.close())
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  vi.stubEnv('NATS_URL', `nats://127.0.0.1:${(server.address() as AddressInfo).port}`)
  const starting = startServers({ dataDir: join(dataDir, 'no-jetstream'), log, only: ['nats'] })
  await expect(starting).rejects.toThrow('the server runs without JetStream (nats-server -js)')
})

test.skipIf(nats.find('') === undefined)(
  'a nats-server whose store is deleted is started again with an empty one',
  async () => {
    const folder = join(dataDir, 'nats-anew')
    const servers = await startServers({ dataDir: folder, log, only: ['nats'] })
    onTestFinished(() => servers.stop())
    const [server] = servers.processes
    const pid = server?.pid()
    rmSync(join(folder, 'nats'), { recursive: true })
    if (pid !== undefined) process.kill(pid, 'SIGKILL')
    await vi.waitUntil(() => server?.pid() !== undefined && server.pid() !== pid, 10_000)
    await expect.poll(() => firstWords(servers.natsUrl, 0).catch(String)).toContain('"jetstream":true')
  },
)
