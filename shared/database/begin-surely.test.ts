import { setTimeout as sleep } from 'node:timers/promises'
import { createTestDatabase } from '@app/test/database.ts'
import { startStepProxy } from '@app/test/step-proxy.ts'
import { expect, onTestFinished, test } from 'vitest'
import { beginSurely } from './begin-surely.ts'
import { openDatabase, type Sql, type TransactionSql } from './database.ts'

async function open() {
  const database = await createTestDatabase('platform')
  const proxy = await startStepProxy(database.url)
  const sql = openDatabase(proxy.url, 'platform', { max: 1 })
  await database.admin`create table platform.seen (n int primary key)`
  await database.admin`grant all on platform.seen to public`
  await sql`select 1`
  onTestFinished(async () => {
    await sql.end({ timeout: 1 })
    proxy.close()
    await database.drop()
  })
  const write = () =>
    beginSurely(sql, async (tx) => {
      const [row] = await tx<{ n: number }[]>`insert into seen values (1) returning n`
      return row?.n
    })
  const seen = async () => (await database.admin<{ n: number }[]>`select n from platform.seen`).map(({ n }) => n)
  return { sql, database, proxy, write, seen }
}

const ask = (write: () => Promise<unknown>) =>
  write().then(
    (n) => ({ n }),
    () => 'lost',
  )

test('is answered exactly when it was committed, at whatever step the connection is lost', async () => {
  const { sql, proxy, write, seen, database } = await open()
  const whole = proxy.count()
  await write()
  const steps = whole.steps()
  expect(steps).toBe(4)
  for (let at = 1; at <= steps; at++)
    for (const when of ['before', 'after'] as const) {
      await database.admin`delete from platform.seen`
      // The driver asks for the types once in a session's life.
      await sql`select 1`
      const { lost } = proxy.count({ at, when })
      const outcome = await ask(write)
      await lost
      const isCommitted = at === steps && when === 'after'
      expect([outcome, await seen()], `${when} ${at}`).toEqual(isCommitted ? [{ n: 1 }, [1]] : ['lost', []])
      proxy.count()
    }
})

test('its statements are run by plans that are kept, and those of no other transaction', async () => {
  const { sql } = await open()
  const mode = async (on: Sql | TransactionSql) =>
    (await on<{ mode: string }[]>`select current_setting('plan_cache_mode') as mode`)[0]?.mode
  expect([await beginSurely(sql, mode), await mode(sql)]).toEqual(['force_generic_plan', 'auto'])
})

test('a commit that is still under way when its connection is lost is waited for', async () => {
  const { proxy, write, seen, database } = await open()
  await database.admin.unsafe(`
    create function wait() returns trigger language plpgsql as 'begin perform pg_sleep(0.5); return null; end';
    create constraint trigger waits after insert on platform.seen deferrable initially deferred
      for each row execute function wait()
  `)
  const { steps } = proxy.count()
  const asking = ask(write)
  while (steps() < 4) await sleep(5)
  await sleep(50)
  proxy.reset()
  expect(await asking).toEqual({ n: 1 })
  expect(await seen()).toEqual([1])
})

test.each(['55P03', '23505'])('a commit that the server refuses (%s) is told so, and not asked for', async (code) => {
  const { proxy, write, database } = await open()
  await database.admin.unsafe(`
    create function refuse() returns trigger language plpgsql as 'begin raise using errcode = ''${code}''; end';
    create constraint trigger refuses after insert on platform.seen deferrable initially deferred
      for each row execute function refuse()
  `)
  const { steps } = proxy.count()
  await expect(write()).rejects.toMatchObject({ code })
  expect(steps()).toBe(4)
})

test('a commit whose pool was closed meanwhile is not asked for', async () => {
  const { sql, write, database } = await open()
  await database.admin.unsafe(`
    create function wait() returns trigger language plpgsql as 'begin perform pg_sleep(1); return null; end';
    create constraint trigger waits after insert on platform.seen deferrable initially deferred
      for each row execute function wait()
  `)
  const asking = ask(write)
  await sleep(300)
  await sql.end({ timeout: 0 })
  const startedAt = performance.now()
  expect(await asking).toBe('lost')
  expect(performance.now() - startedAt).toBeLessThan(2_000)
})

test('an error is told as the work tells it, however soon it comes', async () => {
  const { sql } = await open()
  const failing = () =>
    beginSurely(sql, (tx) =>
      tx`select 1 / 0`.catch(async (cause: unknown) => {
        await sleep(5)
        throw new Error('told', { cause })
      }),
    )
  for (let n = 0; n < 3; n++) await expect(failing()).rejects.toThrow('told')
})
