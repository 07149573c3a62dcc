import { afterAll, beforeAll, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '@app/test/database.ts'
import { createLog } from '../service/log.ts'
import { waitForMigrations } from './wait-for-migrations.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase('webhooks')
})
afterAll(() => database.drop())

const isDone = async (waiting: Promise<void>) =>
  Promise.race([waiting.then(() => true), new Promise<boolean>((resolve) => setTimeout(() => resolve(false), 600))])

test.each([
  ['its own', 'webhooks', 'webhooks'],
  ['those that all services have, each in its schema', 'webhooks', 'kit'],
  ['those of the keys of idempotency', 'idempotency', 'idempotency'],
])('a service waits for the last of %s, and does not mind those of a later release', async (_, schema, source) => {
  const { admin } = database
  const log = createLog('test', 'silent')
  const [last] = await admin<{ name: string }[]>`
    delete from public.migrations where schema = ${schema} and name = (
      select max(name) from public.migrations where schema = ${schema} and name like ${`${source}/%`}
    ) returning name
  `
  const insert = (of: string, name: string) =>
    admin`insert into public.migrations (schema, name, checksum) values (${of}, ${name}, '') on conflict do nothing`
  await insert(schema, `${source}/999-later.sql`)
  await insert('another', last?.name ?? '')
  const waiting = waitForMigrations(database.sql, { log, name: 'webhooks' })
  expect(await isDone(waiting)).toBe(false)
  await insert(schema, last?.name ?? '')
  await waiting
  await admin`delete from public.migrations where name = ${`${source}/999-later.sql`}`
})
