import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import postgres from 'postgres'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { migrate } from './migrate.ts'
import { dataServices } from './migration-files.ts'
import { ensureRoles, urlOfService } from './roles.ts'
import { type Servers, startServers } from './servers/start-servers.ts'

const dataDir = mkdtempSync(join(tmpdir(), 'migrate-'))
const passwords = { messaging: "it's", directory: 'd', platform: 'p', webhooks: 'w' }
let servers: Servers
let count = 0

beforeAll(async () => {
  servers = await startServers({ dataDir, log: () => {}, only: ['postgres'], temporary: true, isDurable: false })
}, 60_000)

afterAll(async () => {
  await servers.stop()
  rmSync(dataDir, { recursive: true })
})

async function runSql(url: string, statement: string) {
  const sql = postgres(url, { max: 1, onnotice: () => {} })
  try {
    return await sql.unsafe(statement)
  } finally {
    await sql.end()
  }
}

async function createDatabase(owner = 'postgres') {
  const url = new URL(servers.postgresUrl)
  url.pathname = `/test${count++}`
  await runSql(servers.postgresUrl, `create database ${url.pathname.slice(1)} owner ${owner}`)
  return url.href
}

/** A repository with these migrations alone. */
function repositoryOf(files: Record<string, string>) {
  const root = mkdtempSync(join(dataDir, 'repository-'))
  for (const [file, sql] of Object.entries(files)) {
    mkdirSync(dirname(join(root, file)), { recursive: true })
    writeFileSync(join(root, file), sql)
  }
  return root
}

const kit = { 'shared/migrations/001-boxes.sql': 'create table boxes (id int)' }
const own = { 'services/messaging/migrations/001-letters.sql': 'create table letters (id int)' }

// First, since the others make the roles as a superuser, and this one must make them itself.
test('needs no superuser, only a user who may create roles and owns the database', async () => {
  await runSql(servers.postgresUrl, `create role operator login createrole createdb password 'o'`)
  const url = new URL(await createDatabase('operator'))
  url.username = 'operator'
  url.password = 'o'
  expect(await migrate(url.href, { passwords })).not.toHaveLength(0)
  expect(await migrate(url.href, { passwords })).toEqual([])
  expect(await runSql(urlOfService(url.href, 'platform', 'p'), 'select from platform.outbox')).toHaveLength(0)
})

test('gives every service a schema of its own that no other service reaches', async () => {
  const url = await createDatabase()
  await migrate(url, { passwords })
  for (const service of dataServices) {
    const login = urlOfService(url, service, passwords[service])
    expect(await runSql(login, `select from ${service}.outbox`)).toHaveLength(0)
    for (const other of dataServices.filter((name) => name !== service)) {
      await expect(runSql(login, `select from ${other}.outbox`)).rejects.toThrow('permission denied for schema')
      await expect(runSql(login, `create table ${other}.mine ()`)).rejects.toThrow('permission denied for schema')
      await expect(runSql(login, `set role svc_${other}`)).rejects.toThrow('permission denied')
    }
    await expect(runSql(login, 'create schema mine')).rejects.toThrow('permission denied for database')
    const reached = await runSql(
      login,
      `select nspname from pg_namespace where has_schema_privilege(oid, 'usage') and nspname !~ '^pg_|^information_schema$'`,
    )
    expect(reached.map(({ nspname }) => String(nspname)).toSorted()).toEqual(
      ['idempotency', 'public', service].toSorted(),
    )
    await expect(runSql(login, 'create table public.mine ()')).rejects.toThrow('permission denied for schema public')
    // It waits for its own, and changes none.
    expect(await runSql(login, 'select from public.migrations')).not.toHaveLength(0)
    await expect(runSql(login, 'delete from public.migrations')).rejects.toThrow('permission denied for table')
  }
})

test('closes the schema that older servers open to everybody', async () => {
  const url = await createDatabase()
  await runSql(url, 'grant create on schema public to public')
  await migrate(url, { passwords })
  const login = urlOfService(url, 'platform', passwords.platform)
  await expect(runSql(login, 'create table public.mine ()')).rejects.toThrow('permission denied for schema public')
})

test('takes an empty password of the environment for none: the role keeps the one that it has', async () => {
  const url = await createDatabase()
  await migrate(url, { passwords })
  const env = { PATH: process.env['PATH'], DATABASE_URL: url, WEBHOOKS_PASSWORD: '' }
  const { status } = spawnSync(process.execPath, [join(import.meta.dirname, 'migrate.ts')], { env })
  expect(status).toBe(0)
  await runSql(urlOfService(url, 'webhooks', passwords.webhooks), 'select 1')
})

test('gives each role its password, and none to a statement, which the server may log', async () => {
  const url = await createDatabase()
  const given = { messaging: "it's another", directory: 'pässword', platform: 'x'.repeat(100), webhooks: 'of-webhooks' }
  const said: unknown[] = []
  const sql = postgres(url, { max: 1, onnotice: () => {}, debug: (_, text, values) => said.push(text, ...values) })
  await ensureRoles(sql, given)
  await sql.end()
  for (const service of dataServices) {
    expect(await runSql(urlOfService(url, service, given[service]), 'select 1 as one')).toEqual([{ one: 1 }])
    await expect(runSql(urlOfService(url, service, `${given[service]}s`), 'select')).rejects.toThrow('authentication')
    expect(String(said)).not.toContain(given[service])
  }
  expect(String(said)).toContain('alter role svc_webhooks')
})

test('lets every service write the idempotency keys, and own them none', async () => {
  const url = await createDatabase()
  await migrate(url, { passwords })
  const login = urlOfService(url, 'messaging', passwords.messaging)
  const insert = `insert into idempotency.keys (organization_id, key, fingerprint, status, answer) values ('o', 'k', 'f', 200, '')`
  expect(await runSql(login, `${insert} returning key`)).toEqual([{ key: 'k' }])
  await expect(runSql(login, 'drop table idempotency.keys')).rejects.toThrow('must be owner')
})

test('applies every file once: the kit in each schema, then what is the service its own', async () => {
  const url = await createDatabase()
  const root = repositoryOf({ ...kit, ...own })
  expect(await migrate(url, { root })).toEqual([
    'messaging: kit/001-boxes.sql',
    'messaging: messaging/001-letters.sql',
    'directory: kit/001-boxes.sql',
    'platform: kit/001-boxes.sql',
    'webhooks: kit/001-boxes.sql',
  ])
  expect(await migrate(url, { root })).toEqual([])
  expect(await runSql(url, `select tableowner from pg_tables where tablename = 'letters'`)).toEqual([
    { tableowner: 'svc_messaging' },
  ])
})

test('applies a new file of the kit after those of the services that are there', async () => {
  const url = await createDatabase()
  await migrate(url, { root: repositoryOf({ ...kit, ...own }) })
  const newer = { 'shared/migrations/002-more.sql': 'create table more (id int)' }
  expect(await migrate(url, { root: repositoryOf({ ...kit, ...newer, ...own }) })).toEqual(
    dataServices.map((service) => `${service}: kit/002-more.sql`),
  )
})

test('applies each file once when several processes migrate at the same time', async () => {
  const url = await createDatabase()
  // The others come while it runs.
  const slow = { 'shared/migrations-idempotency/001-slow.sql': 'select pg_sleep(0.3)' }
  const root = repositoryOf({ ...slow, ...kit, ...own })
  const results = await Promise.all([1, 2, 3].map(() => migrate(url, { root, passwords })))
  expect(results.flat()).toHaveLength(6)
})

test('migrates several databases of one server at the same time', async () => {
  const urls = await Promise.all([1, 2, 3, 4].map(() => createDatabase()))
  const results = await Promise.all(urls.map((url) => migrate(url, { root: repositoryOf(own), passwords })))
  expect(results).toEqual(urls.map(() => ['messaging: messaging/001-letters.sql']))
})

test.each([
  ['only_owner', 'nocreaterole', 'only_owner'],
  ['only_creator', 'createrole', 'postgres'],
])('tells a user what it lacks: %s', async (user, right, owner) => {
  await runSql(servers.postgresUrl, `create role ${user} login ${right} password 'w'`)
  const url = new URL(await createDatabase(owner))
  url.username = user
  url.password = 'w'
  await expect(migrate(url.href)).rejects.toThrow(/: the user of DATABASE_URL must be a superuser, or have CREATEROLE/)
})

test('refuses a database that cannot hold every text', async () => {
  const url = new URL(servers.postgresUrl)
  url.pathname = '/latin'
  await runSql(
    servers.postgresUrl,
    `create database latin encoding 'LATIN1' lc_collate 'C' lc_ctype 'C' template template0`,
  )
  await expect(migrate(url.href, { root: repositoryOf(own) })).rejects.toThrow(
    "The database latin has the encoding LATIN1, and messages need UTF8: create database … encoding 'UTF8' template template0",
  )
  expect(await runSql(url.href, 'select from pg_tables where schemaname !~ $$^pg_|^information$$')).toHaveLength(0)
})

test('refuses a database that was restored where the roles of the services were not', async () => {
  const url = await createDatabase()
  const root = repositoryOf({ ...kit, ...own })
  await migrate(url, { passwords, root })
  await runSql(url, 'alter schema messaging owner to postgres; alter table messaging.letters owner to postgres')
  await expect(migrate(url, { passwords, root })).rejects.toThrow(
    'The schema messaging belongs to postgres, not to svc_messaging',
  )
})

test('refuses a file that was changed after it was applied', async () => {
  const url = await createDatabase()
  await migrate(url, { root: repositoryOf(own) })
  const root = repositoryOf({ 'services/messaging/migrations/001-letters.sql': 'create table letters (id bigint)' })
  await expect(migrate(url, { root })).rejects.toThrow('messaging/001-letters.sql was changed after it was applied')
})

test('a checkout with the line ends of Windows has the same files', async () => {
  const url = await createDatabase()
  await migrate(url, { root: repositoryOf({ ...kit, 'shared/migrations/002-more.sql': 'select 1;\n' }) })
  const root = repositoryOf({ ...kit, 'shared/migrations/002-more.sql': 'select 1;\r\n' })
  expect(await migrate(url, { root })).toEqual([])
})

test('refuses two files with one number, whose order would be that of their names', async () => {
  const root = repositoryOf({ ...kit, 'shared/migrations/001-crates.sql': 'select 1' })
  await expect(migrate(await createDatabase(), { root })).rejects.toThrow('another migration has the same number.')
})

test('refuses a database that is newer than the program', async () => {
  const url = await createDatabase()
  await migrate(url, { root: repositoryOf({ ...kit, ...own }) })
  await expect(migrate(url, { root: repositoryOf(kit) })).rejects.toThrow('newer than this program')
})

test('refuses a file that comes before one that was applied', async () => {
  const url = await createDatabase()
  const third = { 'services/messaging/migrations/003-stamps.sql': 'create table stamps (id int)' }
  await migrate(url, { root: repositoryOf({ ...own, ...third }) })
  const second = { 'services/messaging/migrations/002-pens.sql': 'create table pens (id int)' }
  await expect(migrate(url, { root: repositoryOf({ ...own, ...second, ...third }) })).rejects.toThrow('Renumber it')
})

test('leaves nothing of a file that fails, and all of those before it', async () => {
  const url = await createDatabase()
  const broken = { 'services/messaging/migrations/002-pens.sql': 'create table pens (id int); select 1 / 0' }
  await expect(migrate(url, { root: repositoryOf({ ...own, ...broken }) })).rejects.toThrow(
    'messaging/002-pens.sql failed in the schema messaging: division by zero',
  )
  expect(await runSql(url, `select tablename from pg_tables where schemaname = 'messaging'`)).toEqual([
    { tablename: 'letters' },
  ])
  expect(await migrate(url, { root: repositoryOf(own) })).toEqual([])
})

test('lets the services in where nobody is by default', async () => {
  const url = await createDatabase()
  await runSql(url, 'revoke all on schema public from public')
  await runSql(url, `revoke all on database ${new URL(url).pathname.slice(1)} from public`)
  await migrate(url, { passwords })
  for (const service of dataServices) {
    const login = urlOfService(url, service, passwords[service])
    expect(await runSql(login, `select from ${service}.outbox`)).toHaveLength(0)
    expect(await runSql(login, 'select from public.migrations')).not.toHaveLength(0)
  }
})

test('leaves a database alone in which another program has its migrations', async () => {
  const url = await createDatabase()
  await runSql(url, 'create table migrations (id serial primary key, timestamp bigint not null, name text not null)')
  await expect(migrate(url, { root: repositoryOf(own) })).rejects.toThrow(
    'The table public.migrations of the database belongs to another program: create a database for this one alone.',
  )
  expect(await runSql(url, `select from pg_namespace where nspname = 'messaging'`)).toHaveLength(0)
})

test('runs in a session as it asked for it, whatever the database is set to for others', async () => {
  const url = await createDatabase()
  const alter = `alter database ${new URL(url).pathname.slice(1)}`
  const foreign = { quote_all_identifiers: 'on', DateStyle: 'SQL, DMY', statement_timeout: '1ms', lock_timeout: '1ms' }
  for (const [name, value] of Object.entries(foreign)) {
    await runSql(servers.postgresUrl, `${alter} set ${name} = '${value}'`)
  }
  const slow = `select pg_sleep(0.05); create table seen as select name from pg_settings where source = 'database'`
  const files = { 'services/messaging/migrations/001-seen.sql': slow }
  expect(await migrate(url, { root: repositoryOf(files) })).toEqual(['messaging: messaging/001-seen.sql'])
  await runSql(servers.postgresUrl, `${alter} reset all`)
  expect(await runSql(url, 'select from messaging.seen')).toHaveLength(0)
})

test('waits for a lock without holding up whoever reads the table meanwhile', async () => {
  const url = await createDatabase()
  await migrate(url, { root: repositoryOf(own) })
  // As a backup does, for as long as it takes.
  const reader = postgres(url, { max: 1, onnotice: () => {} })
  const { promise: hasBegun, resolve: begin } = Promise.withResolvers<void>()
  const { promise: isRead, resolve: read } = Promise.withResolvers<void>()
  const reading = reader.begin(async (tx) => {
    await tx`select from messaging.letters`
    begin()
    await isRead
  })
  await hasBegun
  const stamped = { 'services/messaging/migrations/002-stamps.sql': 'alter table letters add stamp text' }
  const migrating = migrate(url, { root: repositoryOf({ ...own, ...stamped }) })
  const isWaiting =
    'select from pg_locks where not granted and database = (select oid from pg_database where datname = current_database())'
  await vi.waitUntil(async () => (await runSql(url, isWaiting)).length > 0, 10_000)
  await runSql(url, `set statement_timeout = '1s'; select from messaging.letters`)
  read()
  await reading
  await reader.end()
  expect(await migrating).toEqual(['messaging: messaging/002-stamps.sql'])
}, 30_000)

test('says which setting led nowhere', async () => {
  await expect(migrate('postgres://postgres@127.0.0.1:1/postgres')).rejects.toThrow(
    'The server of DATABASE_URL is out of reach: connect ECONNREFUSED 127.0.0.1:1',
  )
})
