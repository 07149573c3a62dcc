import { randomBytes } from 'node:crypto'
import { newId } from '@app/shared/values/ids.ts'
import { seal, unseal } from '@app/shared/secrets/seal.ts'
import { newAccountState } from '@app/test/account-state.ts'
import { createTestDatabase, type TestDatabase } from '@app/test/database.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { storeSender } from './put-sender.ts'

const old = { current: 'k1', byId: new Map([['k1', randomBytes(32)]]) }
const keys = { current: 'k2', byId: new Map([['k2', randomBytes(32)], ...old.byId]) }
let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase('messaging')
})
afterAll(() => database.drop())

test('a token that an older key sealed is stored under the current one, so that an event from before a rotation brings no old key back', async () => {
  const accountId = newId('acc')
  const bound = `account:${accountId}`
  const state = newAccountState({ account_id: accountId, sealed_token: seal(old, 'token', bound) })
  await database.sql.begin((tx) => storeSender(tx, keys, state))
  const [row] = await database.sql<{ sealedToken: string }[]>`select sealed_token from senders`
  expect(row?.sealedToken).toMatch(/^k2\./)
  expect(unseal(keys, row?.sealedToken ?? '', bound)).toBe('token')
})

test('a number has the pace that the platform takes from it, and keeps it when that is not told', async () => {
  const state = newAccountState()
  const paceOf = async (changes: object) => {
    await database.sql.begin((tx) => storeSender(tx, keys, { ...state, version: ++state.version, ...changes }))
    const [row] = await database.sql`select interval_ms from pace where grp = ${state.phone_number_id}`
    return 1_000 / Number(row?.['intervalMs'])
  }
  expect(await paceOf({})).toBe(80)
  expect(await paceOf({ messages_per_second: 20 })).toBe(20)
  expect(await paceOf({})).toBe(20)
  expect(await paceOf({ messages_per_second: 1_000 })).toBe(1_000)
  expect(await paceOf({ messages_per_second: null })).toBe(80)
})
