import { join } from 'node:path'
import postgres from 'postgres'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { startPrivateServers } from '../../servers.ts'
import { endSessions, makeReadOnly } from './superuser.ts'

let servers: Awaited<ReturnType<typeof startPrivateServers>>
let sql: postgres.Sql
beforeAll(async () => {
  servers = await startPrivateServers(join(inject('runFolder'), 'superuser'), ['postgres'])
  sql = postgres(servers.postgresUrl, { max: 1, onnotice: () => {} })
  await sql`create table notes (id int)`
})
afterAll(async () => {
  await sql?.end()
  await servers?.stop()
})

const codeOf = async (work: () => Promise<unknown>) =>
  work().then(
    () => 'done',
    (err: { code: string }) => err.code,
  )
const insert = () => codeOf(() => sql`insert into notes (id) values (1)`)

test('Postgres refuses writes for a while, and takes them again', async () => {
  const over = makeReadOnly(servers.postgresUrl, 1_500)
  await expect.poll(insert).toBe('25006')
  await over
  await expect.poll(insert).toBe('done')
})

test('every session of the others is ended', async () => {
  const pid = () => sql`select pg_backend_pid() as pid`.then(([row]) => row?.['pid'] as number)
  const before = await pid()
  await endSessions(servers.postgresUrl)
  await expect.poll(() => pid().catch(() => before)).not.toBe(before)
})
