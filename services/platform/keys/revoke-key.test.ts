import { newId } from '@app/shared/values/ids.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ask, newOrganization, startTestApp, type TestApp } from '../testing/app.ts'
import { authenticateKey } from './authenticate-key.ts'
import { createKey } from './create-key.ts'
import { hashOf } from './keys.ts'
import { revokeKey } from './revoke-key.ts'

let it: TestApp
beforeAll(async () => {
  it = await startTestApp()
})
afterAll(() => it.close())

test('an unknown key is not found, at once', async () => {
  await expect(ask(it.app, revokeKey, { key_id: newId('key') })).rejects.toMatchObject({
    failure: 'resource_not_found',
    param: 'key_id',
  })
})

/** Both wait for the gateways. */
describe.concurrent('revoking', () => {
  test('refuses the key from its commit on, and answers when no gateway can hold it any more', async () => {
    const { key, id } = await ask(it.app, createKey, { organization_id: await newOrganization(it.app), label: 'x' })
    const startedAt = performance.now()
    let lastValidAt = startedAt
    const revoking = ask(it.app, revokeKey, { key_id: id })
    for (;;) {
      const askedAt = performance.now()
      const { state } = await ask(it.app, authenticateKey, { key_hash: hashOf(key) })
      if (state === 'revoked') break
      lastValidAt = askedAt
    }
    // Sooner than the wait for the gateways is over.
    expect(performance.now() - startedAt).toBeLessThan(2_000)
    expect(await revoking).toMatchObject({ id, revoked_at: expect.any(String) })
    expect(performance.now() - lastValidAt).toBeGreaterThan(2_000)
  })

  test('again keeps the first time', async () => {
    const { id } = await ask(it.app, createKey, { organization_id: await newOrganization(it.app), label: 'x' })
    await it.app.sql`update api_keys set revoked_at = '2026-01-31T00:00:00Z' where id = ${id}`
    expect(await ask(it.app, revokeKey, { key_id: id })).toMatchObject({ revoked_at: '2026-01-31T00:00:00.000Z' })
  })
})
