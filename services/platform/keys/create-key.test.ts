import { createKey as contract } from '@app/shared/contracts/platform.ts'
import { newId } from '@app/shared/values/ids.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ask, newOrganization, startTestApp, type TestApp } from '../testing/app.ts'
import { createKey } from './create-key.ts'
import { hashOf } from './keys.ts'
import { listKeys } from './list-keys.ts'

let it: TestApp
beforeAll(async () => {
  it = await startTestApp()
})
afterAll(() => it.close())

test('an unknown organization is not found', async () => {
  const organization_id = newId('org')
  const unknown = { failure: 'resource_not_found', param: 'organization_id' }
  await expect(ask(it.app, createKey, { organization_id, label: 'x' })).rejects.toMatchObject(unknown)
  await expect(ask(it.app, listKeys, { organization_id })).rejects.toMatchObject(unknown)
})

test('a key that would be expired at once is refused', async () => {
  const body = { organization_id: await newOrganization(it.app), label: 'x', expires_at: '2020-01-01T00:00:00Z' }
  await expect(ask(it.app, createKey, body)).rejects.toMatchObject({
    failure: 'invalid_field_value',
    param: 'expires_at',
  })
})

test('a key may last to the last moment that there is', async () => {
  const organization_id = await newOrganization(it.app)
  const { body } = contract
  const given = body.parse({ organization_id, label: 'x', expires_at: '9999-12-31T23:59:59-01:00' })
  const { expires_at } = await ask(it.app, createKey, given)
  expect(expires_at).toBe('9999-12-31T23:59:59.999Z')
})

test('has 24 url-safe characters after its prefix, and the database holds of it a hash and the last four', async () => {
  const organization_id = await newOrganization(it.app)
  const { key, last4, id } = await ask(it.app, createKey, { organization_id, label: 'production' })
  expect(key).toMatch(/^svc_live_[A-Za-z0-9_-]{24}$/)
  expect(last4).toBe(key.slice(-4))
  const [row] = await it.app.sql<{ row: object }[]>`select row_to_json(k) as row from api_keys k where id = ${id}`
  expect(row?.row).toMatchObject({ hash: hashOf(key), last4 })
  expect(JSON.stringify(row)).not.toContain(key.slice('svc_live_'.length, -4))
})

test('the list has the newest first, and no text of a key', async () => {
  const organization_id = await newOrganization(it.app)
  const expires_at = '2999-01-01T00:00:00+02:00'
  const first = await ask(it.app, createKey, { organization_id, label: 'first' })
  const second = await ask(it.app, createKey, { organization_id, label: 'second', expires_at })
  await ask(it.app, createKey, { organization_id: await newOrganization(it.app), label: "another's" })
  const { keys } = await ask(it.app, listKeys, { organization_id })
  expect(keys).toEqual([second, first].map((key) => ({ ...key, key: undefined })))
  for (const key of keys) expect(key).not.toHaveProperty('key')
  expect(keys[0]).toMatchObject({ expires_at: '2998-12-31T22:00:00.000Z', revoked_at: null })
})
