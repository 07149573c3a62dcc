import { setTimeout as sleep } from 'node:timers/promises'
import { startProxy } from '@app/test/faults/nemesis/proxy.ts'
import { startGreetingServer } from '@app/test/greeting-server.ts'
import { testService, type TestService } from '@app/test/service.ts'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { isDatabaseAway, openDatabase, type Sql } from './database.ts'
import { ownSession } from './own-session.ts'

let it: TestService
beforeAll(async () => {
  it = await testService('messaging')
})
afterAll(() => it.close())

function open(url: string, options = {}) {
  const sql = openDatabase(url, 'messaging', { max: 2, ...options })
  onTestFinished(() => sql.end({ timeout: 1 }))
  return sql
}

async function greeting(kind: 'standby' | 'ending') {
  const server = await startGreetingServer(kind)
  onTestFinished(server.close)
  return server
}

/** The address of the database with others before and behind its own. */
const among = (before: string[], behind: string[] = []) => {
  const { host } = new URL(it.databaseUrl)
  return it.databaseUrl.replace(host, [...before, host, ...behind].join())
}

const nobody = '127.0.0.1:1'

const failureOf = (sql: Sql) =>
  sql`select 1`.then(
    () => 'answered',
    (err: unknown) => isDatabaseAway(err),
  )

const pidOf = async (sql: Sql) => (await sql<{ pid: number }[]>`select pg_backend_pid() as pid`)[0]?.pid

test.each(['', '&target_session_attrs=read-write', '&target_session_attrs=primary'])(
  'of several addresses that of the primary is taken: others have nobody, end what they take, or are standbys; %s',
  async (query) => {
    const [standby, ending] = [await greeting('standby'), await greeting('ending')]
    const sql = open(among([nobody, standby.address, ending.address], [nobody]) + query)
    for (const session of [sql, ownSession(sql)]) {
      expect([...(await session`select 1 as n`)]).toEqual([{ n: 1 }])
      if (session !== sql) await session.end({ timeout: 1 })
    }
  },
)

test.each(['ending', 'standby'] as const)(
  'while no address has a primary, who asks is told so, and each (%s) is asked a few times a second',
  async (kind) => {
    const askFor = async (before: string) => {
      const server = await greeting(kind)
      const sql = open(`postgres://svc@${before}${server.address}/db`)
      const endsAt = performance.now() + 1_000
      while (performance.now() < endsAt) expect(await failureOf(sql)).toBe(true)
      expect(server.comers()).toBeGreaterThan(1)
      expect(server.comers()).toBeLessThan(50)
    }
    await Promise.all(['', `${nobody},`].map(askFor))
  },
)

test('a server that says nothing any more is let go of: who asked it is told, and the next question goes over a new connection', async () => {
  const proxy = await startProxy(it.databaseUrl)
  onTestFinished(proxy.close)
  const sql = open(proxy.url, { max: 1, answerSeconds: 0.4 })
  const before = await pidOf(sql)
  // Idle sessions stay.
  await sleep(700)
  expect(await pidOf(sql)).toBe(before)
  proxy.swallow()
  expect(await failureOf(sql)).toBe(true)
  proxy.heal()
  await expect.poll(() => pidOf(sql).catch(() => before)).not.toBe(before)
})

test('a session whose server is made read-only ends after a while, also one that asks nothing that is refused', async () => {
  const sql = open(it.databaseUrl, { max: 1, readOnlySeconds: 0.4 })
  const own = ownSession(sql)
  onTestFinished(() => own.end({ timeout: 1 }))
  const pids = async () => [await pidOf(sql), await pidOf(own)]
  const before = await pids()
  await sleep(700)
  expect(await pids()).toEqual(before)
  // What a reload of the server's settings does to sessions.
  for (const session of [sql, own]) await session.unsafe('set default_transaction_read_only = on')
  await expect.poll(pids).not.toEqual(expect.arrayContaining([before[0]]))
  await expect.poll(pids).not.toEqual(expect.arrayContaining([before[1]]))
})
