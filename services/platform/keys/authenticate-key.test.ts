import { systemCaller } from '@app/shared/bus/ask.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ask, newOrganization, startTestApp, type TestApp } from '../testing/app.ts'
import { getMe } from '../organizations/get-me.ts'
import { authenticateKey } from './authenticate-key.ts'
import { createKey } from './create-key.ts'
import { hashOf } from './keys.ts'

let it: TestApp
beforeAll(async () => {
  it = await startTestApp()
})
afterAll(() => it.close())

async function newKey(expires_at?: string) {
  const organization_id = await newOrganization(it.app, { tier: 'starter', features: ['webhooks'] })
  return ask(it.app, createKey, { organization_id, label: 'x', ...(expires_at && { expires_at }) })
}

const authenticate = (key: string) => ask(it.app, authenticateKey, { key_hash: hashOf(key) })

test('a valid key comes with its organization, its budgets, its features, and what GET /me answers', async () => {
  const { key, id, organization_id } = await newKey('2999-01-01T00:00:00Z')
  expect(await authenticate(key)).toEqual({
    state: 'valid',
    key_id: id,
    organization_id,
    expires_at: '2999-01-01T00:00:00.000Z',
    tier: { name: 'starter', write_per_minute: 60, read_per_minute: 600 },
    features: ['webhooks'],
    me: await getMe(
      it.app,
      { params: {}, query: {}, body: undefined },
      { ...systemCaller(organization_id), keyId: id },
    ),
  })
})

test('a key that nobody issued is unknown', async () => {
  expect(await authenticate('svc_live_AAAAAAAAAAAAAAAAAAAAAAAA')).toMatchObject({
    state: 'unknown',
    key_id: null,
    organization_id: null,
    tier: null,
  })
})

test('a key is expired from that moment on, by the clock of the database', async () => {
  const { key, id } = await newKey('2999-01-01T00:00:00Z')
  await it.app.sql`update api_keys set expires_at = now() - interval '1 ms' where id = ${id}`
  expect(await authenticate(key)).toMatchObject({ state: 'expired', key_id: id })
})

test('a revoked key stays revoked when it has expired, too', async () => {
  const { key, id } = await newKey('2999-01-01T00:00:00Z')
  await it.app.sql`update api_keys set expires_at = now() - interval '1 ms', revoked_at = now() where id = ${id}`
  expect(await authenticate(key)).toMatchObject({ state: 'revoked', key_id: id })
})
