import { memberChanged, teamChanged } from '@app/shared/contracts/platform.ts'
import { newId } from '@app/shared/values/ids.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ask, newOrganization, startTestApp, type TestApp } from '../testing/app.ts'
import { createMember } from './create-member.ts'
import { createTeam } from './create-team.ts'

let it: TestApp
beforeAll(async () => {
  it = await startTestApp()
})
afterAll(() => it.close())

const ana = { name: 'Ana', email: 'ana@example.com' }

test("another organization's team is not found, as an unknown one", async () => {
  const organization_id = await newOrganization(it.app)
  const other = await ask(it.app, createTeam, { organization_id: await newOrganization(it.app), name: 'Other' })
  for (const team_id of [other.id, newId('team')]) {
    await expect(ask(it.app, createMember, { organization_id, team_id, ...ana })).rejects.toMatchObject({
      failure: 'resource_not_found',
      param: 'team_id',
    })
  }
})

test('joins the team', async () => {
  const organization_id = await newOrganization(it.app)
  const team = await ask(it.app, createTeam, { organization_id, name: 'Support' })
  const member = await ask(it.app, createMember, { organization_id, team_id: team.id, ...ana })
  expect(member).toEqual({ id: expect.stringMatching(/^usr_/), object: 'member', team_id: team.id, ...ana })
  const rows = await it.app.sql`select organization_id, team_id, name, email from members where id = ${member.id}`
  expect(rows).toEqual([{ organizationId: organization_id, teamId: team.id, ...ana }])
})

test('a team has an e-mail once, whatever its case, also of two at once; another team may have it too', async () => {
  const organization_id = await newOrganization(it.app)
  const [team, other] = await Promise.all(
    ['Support', 'Sales'].map((name) => ask(it.app, createTeam, { organization_id, name })),
  )
  const create = (team_id = '', email = ana.email) =>
    ask(it.app, createMember, { organization_id, team_id, name: 'Ana', email })
  const results = await Promise.allSettled([create(team?.id), create(team?.id, 'Ana@Example.com')])
  const [{ id } = { id: '' }, ...more] = results.flatMap((result) =>
    result.status === 'fulfilled' ? result.value : [],
  )
  expect(more).toEqual([])
  await expect(create(team?.id)).rejects.toMatchObject({
    failure: 'name_taken',
    param: 'email',
    message: `The team has a member with this e-mail: ${id}.`,
  })
  await expect(create(other?.id)).resolves.toBeDefined()
})

test('teams and members are told of, the first team too, a refused one not', async () => {
  const organization_id = await newOrganization(it.app)
  const team = await ask(it.app, createTeam, { organization_id, name: 'Support' })
  const member = await ask(it.app, createMember, { organization_id, team_id: team.id, ...ana })
  await ask(it.app, createTeam, { organization_id, name: 'Support' }).catch(() => undefined)
  const told = await it.app.sql<{ subject: string; data: unknown }[]>`
    select subject, convert_from(payload, 'UTF8')::json as data from outbox
    where headers ->> 'organization' = ${organization_id} order by seq
  `
  expect(told).toEqual([
    { subject: teamChanged.subject, data: { team: { id: expect.stringMatching(/^team_/), name: 'Default' } } },
    { subject: teamChanged.subject, data: { team: { id: team.id, name: 'Support' } } },
    { subject: memberChanged.subject, data: { member: { id: member.id, team_id: team.id, ...ana } } },
  ])
})
