import { afterAll, beforeAll, expect, test } from 'vitest'
import { ask, startTestApp, type TestApp } from '../testing/app.ts'
import { createOrganization } from './create-organization.ts'

let it: TestApp
beforeAll(async () => {
  it = await startTestApp()
})
afterAll(() => it.close())

test('has every feature, the tier pro and the default settings unless told otherwise, and one team', async () => {
  const organization = await ask(it.app, createOrganization, { name: 'Acme' })
  expect(organization).toMatchObject({
    object: 'organization',
    name: 'Acme',
    tier: 'pro',
    features: ['messaging', 'platform', 'webhooks'],
    subscription: 'active',
    retention_days: null,
    settings: {
      window_check: 'strict',
      require_marketing_consent: false,
      unknown_outcome: 'fail',
      ordering: 'strict',
      message_ttl_hours: 24,
      messages_per_month: null,
    },
  })
  const teams = await it.app.sql`select name from teams where organization_id = ${organization.id}`
  expect(teams).toEqual([{ name: 'Default' }])
})

test('takes what it is told: no feature at all, a tier, days of retention, single settings', async () => {
  const organization = await ask(it.app, createOrganization, {
    name: 'Acme',
    tier: 'starter',
    features: [],
    retention_days: 30,
    settings: { ordering: 'relaxed' },
  })
  expect(organization).toMatchObject({ tier: 'starter', features: [], retention_days: 30 })
  expect(organization.settings).toMatchObject({ ordering: 'relaxed', window_check: 'strict' })
})

test('keeps a feature that is named twice once', async () => {
  const organization = await ask(it.app, createOrganization, { name: 'A', features: ['messaging', 'messaging'] })
  expect(organization.features).toEqual(['messaging'])
})
