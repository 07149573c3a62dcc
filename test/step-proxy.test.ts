import postgres from 'postgres'
import { expect, onTestFinished, test } from 'vitest'
import { createTestDatabase } from './database.ts'
import { until } from './until.ts'
import { type Cut, startStepProxy } from './step-proxy.ts'

async function open() {
  const database = await createTestDatabase('platform')
  const proxy = await startStepProxy(database.url)
  const sql = postgres(proxy.url, { max: 1, onnotice: () => {}, connection: { search_path: 'public' } })
  await database.admin`create table seen (n int)`
  await database.admin`grant all on seen to public`
  // The driver asks for the types once in a session's life.
  await sql`select 1`
  onTestFinished(async () => {
    await sql.end({ timeout: 1 })
    proxy.close()
    await database.drop()
  })
  const seen = async () => (await database.admin`select n from seen order by n`).map(({ n }) => n)
  return { sql, proxy, seen }
}

const flow = (sql: postgres.Sql) =>
  sql.begin(async (tx) => {
    await tx`insert into seen values (1)`
    await tx`insert into seen values (2)`
  })

test('counts statements, begin and commit, in a transaction and without', async () => {
  const { sql, proxy, seen } = await open()
  const alone = proxy.count()
  await sql`insert into seen values (${0})`
  expect(alone.steps()).toBeGreaterThan(0)
  const together = proxy.count()
  await flow(sql)
  expect(together.steps()).toBe(4)
  expect(await seen()).toEqual([0, 1, 2])
})

test.each<[Cut, number[]]>([
  [{ at: 1, when: 'before' }, []],
  [{ at: 3, when: 'after' }, []],
  [{ at: 4, when: 'before' }, []],
  [{ at: 4, when: 'after' }, [1, 2]],
])('loses the connection at a step: %o', async (cut, expected) => {
  const { sql, proxy, seen } = await open()
  const { lost } = proxy.count(cut)
  await expect(flow(sql)).rejects.toThrow(/CONNECTION_CLOSED|ECONNRESET|closed/)
  await lost
  expect(await seen()).toEqual(expected)
  // Once: the next one passes.
  await flow(sql)
  expect(await seen()).toEqual([...expected, 1, 2].toSorted((a, b) => a - b))
})

test('loses the connection at a step, and once more as many steps behind it', async () => {
  const { sql, proxy, seen } = await open()
  const { steps, losses } = proxy.count({ at: 4, when: 'before', again: 4 })
  await expect(flow(sql)).rejects.toThrow(/CONNECTION_CLOSED|ECONNRESET|closed/)
  await expect(flow(sql)).rejects.toThrow(/CONNECTION_CLOSED|ECONNRESET|closed/)
  await flow(sql)
  expect([steps(), await losses(), await seen()]).toEqual([12, 2, [1, 2]])
})

test('tells of a cut that it was not met, also when as many steps come in the count behind it', async () => {
  const { sql, proxy, seen } = await open()
  const { losses } = proxy.count({ at: 5, when: 'after' })
  await flow(sql)
  proxy.count()
  await flow(sql)
  expect([await losses(), await seen()]).toEqual([0, [1, 1, 2, 2]])
})

test('tells of a cut when its connection is lost, also in another way than by the answer', async () => {
  const { sql, proxy } = await open()
  const { steps, losses } = proxy.count({ at: 1, when: 'after' })
  const asked = expect(sql`select pg_sleep(30)`).rejects.toThrow(/CONNECTION_CLOSED|ECONNRESET|closed/)
  await until(() => expect(steps()).toBe(1))
  proxy.reset()
  expect(await losses()).toBe(1)
  await asked
})
