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

test('a service waits for the last of its migrations, and does not mind those of a later release', async () => {
  const { admin } = database
  const log = createLog('test', 'silent')
  const [last] = await admin<{ name: string }[]>`
    delete from public.migrations where schema = 'webhooks' and name = (
      select max(name) from public.migrations where schema = 'webhooks' and name like 'webhooks/%'
    ) returning name
  `
  await admin`insert into public.migrations (schema, name, checksum) values ('webhooks', 'webhooks/999-later.sql', '')`
  const waiting = waitForMigrations(database.sql, { log, name: 'webhooks' })
  expect(await isDone(waiting)).toBe(false)
  await admin`insert into public.migrations (schema, name, checksum) values ('webhooks', ${last?.name ?? ''}, '')`
  await waiting
})
