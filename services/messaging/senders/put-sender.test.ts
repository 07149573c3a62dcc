import { randomBytes } from 'node:crypto'
import { newId } from '@app/shared/ids.ts'
import { seal, unseal } from '@app/shared/seal.ts'
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
  await database.sql.begin((tx) =>
    storeSender(tx, keys, {
      account_id: accountId,
      organization_id: newId('org'),
      phone_number_id: '106540352242922',
      business_account_id: '102290129340398',
      version: 1,
      phone_number: '+15550001111',
      name: 'Acme',
      team_id: newId('team'),
      customer: null,
      refusal: null,
      attached: true,
      sealed_token: seal(old, 'token', bound),
      settings: {
        window_check: 'strict',
        require_marketing_consent: false,
        unknown_outcome: 'fail',
        ordering: 'strict',
        message_ttl_hours: 24,
      },
    }),
  )
  const [row] = await database.sql<{ sealedToken: string }[]>`select sealed_token from senders`
  expect(row?.sealedToken).toMatch(/^k2\./)
  expect(unseal(keys, row?.sealedToken ?? '', bound)).toBe('token')
})
