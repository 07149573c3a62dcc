import { systemCaller } from '@app/shared/bus/ask.ts'
import { newId } from '@app/shared/values/ids.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createKey } from '../keys/create-key.ts'
import { createTeam } from '../teams/create-team.ts'
import { ask, newOrganization, startTestApp, type TestApp } from '../testing/app.ts'
import { getMe } from './get-me.ts'

let it: TestApp
beforeAll(async () => {
  it = await startTestApp()
})
afterAll(() => it.close())

test('shows the organization, the key that asks, its budgets, and every team of its own in order of age', async () => {
  const id = await newOrganization(it.app, { name: 'Acme', tier: 'standard' })
  // It has a team of its own.
  await newOrganization(it.app)
  const team = await ask(it.app, createTeam, { organization_id: id, name: 'Second' })
  await ask(it.app, createKey, { organization_id: id, label: 'another' })
  const key = await ask(it.app, createKey, { organization_id: id, label: 'production' })
  await ask(it.app, createKey, { organization_id: id, label: 'a third' })
  const me = await ask(it.app, getMe, undefined, { caller: { ...systemCaller(id), keyId: key.id } })
  expect(me).toEqual({
    organization: { id, object: 'organization', name: 'Acme' },
    api_key: { id: key.id, object: 'api_key', label: 'production', last4: key.key.slice(-4) },
    rate_limits: { tier: 'standard', write_per_minute: 600, read_per_minute: 6000 },
    teams: [{ id: expect.stringMatching(/^team_/), object: 'team', name: 'Default' }, team],
  })
})

test("another organization's key is not found", async () => {
  const key = await ask(it.app, createKey, { organization_id: await newOrganization(it.app), label: 'a' })
  const caller = { ...systemCaller(await newOrganization(it.app)), keyId: key.id }
  await expect(ask(it.app, getMe, undefined, { caller })).rejects.toMatchObject({ failure: 'resource_not_found' })
  const nobody = { ...systemCaller(newId('org')), keyId: newId('key') }
  await expect(ask(it.app, getMe, undefined, { caller: nobody })).rejects.toMatchObject({
    failure: 'resource_not_found',
  })
})
