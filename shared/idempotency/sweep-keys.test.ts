import { createTestDatabase, type TestDatabase } from '@app/test/database.ts'
import { untilSomebodyWaits } from '@app/test/lock-waits.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { type Caller, rpc } from '../api/contract.ts'
import type { TransactionSql } from '../database/database.ts'
import { type Once, once, sweepKeys } from './idempotency.ts'

const contract = rpc({
  subject: 'rpc.platform.make',
  summary: 'Make one',
  http: { method: 'POST', path: '/make', status: 201, tag: 'Test' },
  answer: z.object({ made: z.int() }),
})

let database: TestDatabase
let app: Once
beforeAll(async () => {
  // The service that sweeps.
  database = await createTestDatabase('platform')
  const relay = { wake: () => {}, stop: () => Promise.resolve() }
  app = { sql: database.sql, relay, sealKeys: { current: 'k', byId: new Map() } } as unknown as Once
})
afterAll(() => database.drop())

const callerOf = (key: string): Caller => ({
  organizationId: 'org',
  keyId: '',
  requestId: 'req',
  deadline: Infinity,
  traceparent: '',
  idempotency: { key, fingerprint: 'same' },
})

/** Used a day and an hour ago. */
async function useLongAgo(key: string) {
  await once(app, contract, callerOf(key), () => Promise.resolve({ made: 1 }))
  await database.sql`update idempotency.keys set created_at = now() - interval '25 hours' where key = ${key}`
}

const kept = async () => (await database.sql<{ key: string }[]>`select key from idempotency.keys`).map(({ key }) => key)

test('keys that are over are swept, and no others', async () => {
  await useLongAgo('old')
  await once(app, contract, callerOf('young'), () => Promise.resolve({ made: 1 }))
  expect(await sweepKeys(database.sql)).toBe(1)
  expect(await kept()).toEqual(['young'])
})

test('a key that is used anew just when it is swept still has its answer', async () => {
  await useLongAgo('daily')
  let swept: number | undefined
  let effects = 0
  const use = () =>
    once(app, contract, callerOf('daily'), async () => {
      swept ??= await sweepKeys(database.sql)
      return { made: ++effects }
    })
  expect(await use()).toMatchObject({ replayed: false })
  expect(swept).toBe(0)
  expect(await use()).toMatchObject({ replayed: true })
  expect(effects).toBe(1)
})

test('the sweep holds up nobody who uses several old keys anew at once, whatever their order', async () => {
  // The sweep would come to the later one first.
  await useLongAgo('b')
  await useLongAgo('a')
  const renew = (tx: TransactionSql, key: string) =>
    tx`update idempotency.keys set created_at = now() where key = ${key}`
  const swept = await database.sql.begin(async (tx) => {
    await renew(tx, 'a')
    const sweep = sweepKeys(database.sql)
    // What it cannot have it leaves, or it waits for it with the other one in its hands.
    await Promise.race([sweep, untilSomebodyWaits(database.admin)])
    await renew(tx, 'b')
    return await sweep
  })
  expect(swept).toBe(1)
  expect(await kept()).toContain('a')
})
