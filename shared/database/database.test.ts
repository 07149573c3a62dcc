import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { createTestDatabase } from '@app/test/database.ts'
import { startProxy } from '@app/test/faults/nemesis/proxy.ts'
import { foreignSettings } from '@app/test/foreign-settings.ts'
import { testService, type TestService } from '@app/test/service.ts'
import { startStepProxy } from '@app/test/step-proxy.ts'
import { until } from '@app/test/until.ts'
import { isDatabaseAway, openDatabase, type Sql, type TransactionSql } from './database.ts'

let it: TestService
beforeAll(async () => (it = await testService('messaging')))
afterAll(() => it.close())

test('a query is awaited as a promise is, and is none: its rows would outlive it', async () => {
  const { sql } = it
  expect(sql`select 1`).not.toBeInstanceOf(Promise)
  expect([...(await sql`select ${1}::int as n`)]).toEqual([{ n: 1 }])
  expect(await sql`select 2 as n`.then(([row]) => row)).toEqual({ n: 2 })
  const both = await Promise.all([sql`select 3 as n`, sql.unsafe('select 4 as n')])
  expect(both.map(([row]) => row?.['n'])).toEqual([3, 4])
  const seen: unknown[] = []
  await sql`select n from generate_series(1, 5) n`.cursor(2, (rows) => void seen.push(rows.length))
  expect(seen).toEqual([2, 2, 1])
})

test('a query that fails rejects, is caught, and ends its transaction', async () => {
  const { sql } = it
  await expect(sql`select 1 / 0`).rejects.toThrow('division by zero')
  expect(await sql`select 1 / 0`.catch((err: Error) => err.message)).toContain('division by zero')
  let ended = false
  await expect(sql`select 1 / 0`.finally(() => (ended = true))).rejects.toThrow('division by zero')
  expect(ended).toBe(true)
  await expect(sql.begin((tx) => [tx`select 1`, tx`select 1 / 0`])).rejects.toThrow('division by zero')
})

test('a session is as it asked to be, whatever its role, database or server is set to for others', async () => {
  const foreign = Object.keys(foreignSettings).map((name) => name.toLowerCase())
  const ofRole = await it.sql`
    select name from pg_settings where lower(name) = any(${foreign}) and source in ('user', 'database user')
  `
  expect(ofRole.map(({ name }) => name)).toEqual([])
  // Its role's are there all the same.
  const [role] = await it.sql<{ count: number }[]>`
    select cardinality(setconfig)::int as count from pg_db_role_setting where setrole = current_user::regrole
  `
  expect(role).toEqual({ count: foreign.length })
})

test('what was accepted is on the disk, no index is dear, and nothing is compiled', async () => {
  const names = ['synchronous_commit', 'jit', 'random_page_cost']
  const settings = await it.sql`select name, setting from pg_settings where name = any(${names}) order by name`
  expect([...settings]).toEqual([
    { name: 'jit', setting: 'off' },
    { name: 'random_page_cost', setting: '1.1' },
    { name: 'synchronous_commit', setting: 'on' },
  ])
})

test('Postgres gives a session up whose host has been silent for 20 s, and its locks with it', async () => {
  // What that does: test/faults/long/lost-packets.test.ts.
  const settings = await it.sql`select name, setting from pg_settings where name ~ '^tcp_' order by name`
  expect(Object.fromEntries(settings.map(({ name, setting }) => [name, setting]))).toMatchObject({
    tcp_keepalives_idle: '10',
    tcp_keepalives_interval: '5',
    tcp_keepalives_count: '2',
    tcp_user_timeout: '20000',
  })
})

test('a query goes to the session that was busy last, so that few are used, whose plans are made', async () => {
  const { sql } = it
  const pidOf = async (seconds: number) => {
    const [row] = await sql<{ pid: number }[]>`select pg_backend_pid() as pid from pg_sleep(${seconds})`
    return row?.pid
  }
  const together = await Promise.all([0.3, 0.1, 0.2].map(pidOf))
  expect(new Set(together).size).toBe(3)
  const oneByOne = []
  for (let n = 0; n < 10; n++) oneByOne.push(await pidOf(0))
  expect(new Set(oneByOne)).toEqual(new Set([together[0]]))
  expect(new Set(await Promise.all([pidOf(0.1), pidOf(0.1), pidOf(0.1)])).size).toBe(3)
})

/** A socket that breaks tells its error, and is closed a turn of the event loop later: what is asked in between goes nowhere. */
test.each([
  ['when its connection has told its error', () => Promise.resolve()],
  ['just before its connection is closed', () => new Promise((resolve) => void setImmediate(resolve))],
])(
  'what is asked %s fails: it neither waits for ever, nor is told as done, nor stands before the next',
  async (_, moment) => {
    const { sql: direct, databaseUrl } = it
    const proxy = await startProxy(databaseUrl)
    const sql = openDatabase(proxy.url, 'messaging', { max: 1 })
    onTestFinished(async () => {
      await sql.end({ timeout: 1 })
      proxy.close()
    })
    await sql`select 1`
    const broken = sql`select pg_sleep(10)`.catch((err: Error) => err)
    const asked = broken
      .then(moment)
      .then(() => sql`insert into handled_events (consumer, event_id) values ('test', 'asked')`)
    setTimeout(() => proxy.reset(), 20)
    await expect(asked).rejects.toMatchObject({ code: 'CONNECTION_CLOSED' })
    expect(await broken).toMatchObject({ code: 'ECONNRESET' })
    expect([...(await sql`select 1 as n`)]).toEqual([{ n: 1 }])
    expect([...(await direct`select from handled_events where event_id = 'asked'`)]).toEqual([])
  },
)

test.each(['before', 'after'] as const)(
  'a connection that is lost %s the array types were read is a failure of who asked, and of nobody else',
  async (when) => {
    const steps = await startStepProxy(it.databaseUrl)
    const sql = openDatabase(steps.url, 'messaging', { max: 1 })
    const unhandled: unknown[] = []
    const note = (err: unknown) => void unhandled.push(err)
    process.on('unhandledRejection', note)
    onTestFinished(async () => {
      process.off('unhandledRejection', note)
      await sql.end({ timeout: 1 })
      steps.close()
    })
    // A session's first step.
    const { lost } = steps.count({ at: 1, when })
    await Promise.all([lost, sql`select 1`.catch(() => null)])
    await until(async () => expect([...(await sql`select ${['a']}::text[] as list`)]).toEqual([{ list: ['a'] }]))
    expect(unhandled).toEqual([])
  },
)

test('a transaction that lost its connection does nothing more', async () => {
  const { sql: direct, databaseUrl } = it
  const proxy = await startProxy(databaseUrl)
  const sql = openDatabase(proxy.url, 'messaging', { max: 1 })
  const put = (tx: Sql | TransactionSql, id: string) =>
    tx`insert into handled_events (consumer, event_id) values ('tx', ${id})`
  const late = Promise.withResolvers<unknown>()
  try {
    const transaction = sql.begin(async (tx) => {
      await put(tx, 'before')
      proxy.reset()
      await expect.poll(() => sql`select 1`.catch(() => null)).not.toBeNull()
      late.resolve(await put(tx, 'after').catch((err: Error) => err))
    })
    await expect(transaction).rejects.toThrow()
    expect(await late.promise).toBeInstanceOf(Error)
    expect(await direct`select from handled_events where consumer = 'tx'`).toHaveLength(0)
  } finally {
    await sql.end({ timeout: 1 })
    proxy.close()
  }
})

test.each([
  ['53100', 'could not extend file "base/5/16403": No space left on device', true],
  ['58030', 'could not write to file "base/5/16403": Input/output error', true],
  ['25006', 'cannot execute INSERT in a read-only transaction', true],
  ['XX000', 'could not write init file', true],
  ['EHOSTUNREACH', 'connect EHOSTUNREACH 10.0.0.7:5432', true],
  ['EAI_AGAIN', 'getaddrinfo EAI_AGAIN postgres', true],
  ['XX000', 'cache lookup failed for type 0', false],
  ['23505', 'duplicate key value violates unique constraint', false],
])('an error %s, "%s", is of the database itself: %s', (code, message, isAway) => {
  expect(isDatabaseAway(Object.assign(new Error(message), { code }))).toBe(isAway)
})

test.each([
  ['[::1]', ['::1'], [5432]],
  ['[::1]:6543', ['::1'], [6543]],
  ['[2001:db8::1]:6543,two.example,192.0.2.1:6544', ['2001:db8::1', 'two.example', '192.0.2.1'], [6543, 6543, 6544]],
])('of %s the hosts are %j and the ports %j', (servers, host, port) => {
  expect(openDatabase(`postgres://someone:word@${servers}/chat`, 'messaging').options).toMatchObject({ host, port })
})

test('a host whose name is not there is a database that is away', async () => {
  const sql = openDatabase('postgres://user:word@database.invalid/test', 'messaging', { max: 1 })
  onTestFinished(() => sql.end({ timeout: 1 }))
  const failure: unknown = await sql`select 1`.catch((err: unknown) => err)
  expect(isDatabaseAway(failure), String(failure)).toBe(true)
})

test('a database that refuses our login is away from every statement', async () => {
  const { databaseUrl } = it
  const { admin, url, drop } = await createTestDatabase('messaging')
  onTestFinished(drop)
  const changed = (from: string, change: (one: URL) => void) => {
    const one = new URL(from)
    change(one)
    return one.href
  }
  const [row] = await admin<{ name: string }[]>`select current_database() as name`
  await admin`revoke connect on database ${admin(row?.name ?? '')} from public, svc_messaging`
  const refusals = [
    [changed(databaseUrl, (one) => (one.password = 'another')), '28P01'],
    [changed(databaseUrl, (one) => (one.pathname = '/none')), '3D000'],
    [url, '42501'],
  ] as const
  for (const [refused, code] of refusals) {
    const sql = openDatabase(refused, 'messaging', { max: 1 })
    const failure: unknown = await sql`select 1`.catch((err: unknown) => err)
    await sql.end({ timeout: 1 })
    expect(failure).toMatchObject({ code })
    expect(isDatabaseAway(failure), code).toBe(true)
  }
})

test('a transaction whose session the server ends rejects, whenever that is, and the pool goes on', async () => {
  const proxy = await startProxy(it.databaseUrl)
  const sql = openDatabase(proxy.url, 'messaging', { max: 2 })
  onTestFinished(async () => {
    await sql.end({ timeout: 1 })
    proxy.close()
  })
  const isLost = { code: 'CONNECTION_CLOSED' }
  const inQuery = sql.begin((tx) => tx`select pg_sleep(5)`)
  const between = sql.begin(async (tx) => {
    await tx`select 1`
    await sleep(300)
    await tx`select 2`
  })
  const both = Promise.allSettled([inQuery, between])
  await sleep(150)
  proxy.end()
  expect(await both).toMatchObject([{ reason: isLost }, { reason: isLost }])
  await sleep(300)
  expect(await sql.begin((tx) => tx`select 3 as n`)).toMatchObject([{ n: 3 }])
})

test('why the server ended a session is told to nobody who asks the next one', async () => {
  const sql = openDatabase(it.databaseUrl, 'messaging', { max: 1 })
  onTestFinished(() => sql.end({ timeout: 1 }))
  const [session] = await sql<{ pid: number }[]>`select pg_backend_pid() as pid`
  const rows = sql`select repeat('x', 20000), pg_sleep(n) from generate_series(0, 10, 5) n`
  setTimeout(() => void it.sql`select pg_terminate_backend(${session?.pid ?? 0})`.catch(() => {}), 300)
  await expect(rows).rejects.toMatchObject({ code: 'CONNECTION_CLOSED' })
  expect([...(await sql`select 1 as n`)]).toEqual([{ n: 1 }])
})
