import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { locateCrashing } from '@app/test/faults/crashing-postgres.ts'
import { asSuperuser } from '@app/test/faults/postgres-server.ts'
import { startStepProxy } from '@app/test/step-proxy.ts'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { beginSurely } from './begin-surely.ts'
import { openDatabase, type Sql, type TransactionSql } from './database.ts'

// Nothing of a commit is on the disk when it is answered, so that a crash takes it back.
const settings = ['wal_writer_delay=10s', 'autovacuum=off']
const unwaited = '?synchronous_commit=off'

const folder = mkdtempSync(join(tmpdir(), 'crashed-'))
let server: Awaited<ReturnType<typeof locateCrashing>>
beforeAll(async () => {
  server = await locateCrashing(join(folder, 'server'), settings)
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const numberOf = async (sql: Sql | TransactionSql) => {
  const [row] = await sql<{ id: string }[]>`select pg_current_xact_id()::text as id`
  return BigInt(row?.id ?? 0)
}

test.for([
  [
    'a commit that a crash took back is not taken for that of another transaction, which got its number since',
    false,
    false,
  ],
  ['nor is it where it can be asked what is there', false, true],
  ['a commit that outlived a crash is known where it can be asked what is there', true, true],
] as const)('%s', async ([, isWritten, isAsked], { skip }) => {
  if (!server) return skip('This machine has no Postgres of its own.')
  const { first, later } = server.urls
  await server.start('first')
  onTestFinished(server.stop)
  await asSuperuser(first, async (sql) => {
    await sql`drop table if exists seen`
    await sql`create table seen (n int)`
    await sql`checkpoint`
  })
  const proxy = await startStepProxy(first)
  const { host } = new URL(proxy.url)
  // Who has lost it finds it at the later address.
  const sql = openDatabase(proxy.url.replace(host, `${host},${new URL(later).host}`) + unwaited, 'public', { max: 1 })
  onTestFinished(async () => {
    await sql.end({ timeout: 1 })
    proxy.close()
  })
  await sql`select 1`
  const { lost } = proxy.count({ at: 5, when: 'after' })
  let number = 0n
  const work = async (tx: TransactionSql) => {
    number = await numberOf(tx)
    await tx`insert into seen values (1)`
  }
  const isThere = async () => (await sql`select from seen`).length > 0
  const answer = beginSurely(sql, work, isAsked ? { isThere } : {}).then(
    () => 'committed',
    () => 'lost',
  )
  await lost
  proxy.close()
  if (isWritten) await asSuperuser(first, (others) => others`checkpoint`)
  await server.kill()
  await server.start('first')
  await asSuperuser(first, async (others) => {
    expect([...(await others`select n from seen`)]).toEqual(isWritten ? [{ n: 1 }] : [])
    while ((await numberOf(others)) < number);
    const [given] = await others`select pg_xact_status(${String(number)}::text::xid8) as status`
    expect(given).toEqual({ status: 'committed' })
  })
  await server.stop()
  await server.start('later')
  expect(await answer).toBe(isWritten ? 'committed' : 'lost')
})
