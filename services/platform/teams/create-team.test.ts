import { systemCaller } from '@app/shared/bus/ask.ts'
import { newId } from '@app/shared/values/ids.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ask, newOrganization, startTestApp, type TestApp } from '../testing/app.ts'
import { createTeam } from './create-team.ts'
import { listTeams } from './list-teams.ts'

let it: TestApp
beforeAll(async () => {
  it = await startTestApp()
})
afterAll(() => it.close())

test('an unknown organization is not found', async () => {
  await expect(ask(it.app, createTeam, { organization_id: newId('org'), name: 'x' })).rejects.toMatchObject({
    failure: 'resource_not_found',
    param: 'organization_id',
  })
})

test('a name is taken within its organization alone', async () => {
  const organization_id = await newOrganization(it.app)
  const team = await ask(it.app, createTeam, { organization_id, name: 'Support' })
  expect(team).toEqual({ id: expect.stringMatching(/^team_/), object: 'team', name: 'Support' })
  await expect(ask(it.app, createTeam, { organization_id, name: 'Support' })).rejects.toMatchObject({
    failure: 'name_taken',
    param: 'name',
  })
  const other = await newOrganization(it.app)
  await expect(ask(it.app, createTeam, { organization_id: other, name: 'Support' })).resolves.toBeDefined()
})

test('teams are listed by their age, and nobody else’s', async () => {
  const [organization_id] = [await newOrganization(it.app), await newOrganization(it.app)]
  const team = await ask(it.app, createTeam, { organization_id, name: 'Again' })
  const { teams } = await ask(it.app, listTeams, undefined, { caller: systemCaller(organization_id) })
  expect(teams).toEqual([
    { id: expect.stringMatching(/^team_/), name: 'Default' },
    { id: team.id, name: 'Again' },
  ])
})
