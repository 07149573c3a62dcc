import { newId } from '@app/shared/values/ids.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { archiveCustomer } from '../customers/archive-customer.ts'
import { systemCaller } from '@app/shared/bus/ask.ts'
import { createTeam } from '../teams/create-team.ts'
import {
  ask,
  connect,
  eventsOf,
  newCustomer,
  newOrganization,
  newPhoneNumberId,
  startPeers,
  startTestApp,
  type TestApp,
} from '../testing/app.ts'

let it: TestApp
let peers: Awaited<ReturnType<typeof startPeers>>
beforeAll(async () => {
  it = await startTestApp()
  peers = await startPeers(it.app)
})
afterAll(async () => {
  await peers.stop()
  await it.close()
})

async function twoTeams() {
  const organizationId = await newOrganization(it.app)
  const { id: team_id } = await ask(it.app, createTeam, { organization_id: organizationId, name: 'Second' })
  return { organizationId, team_id, customer_id: await newCustomer(it.app, organizationId, { team_id }) }
}

test("a customer's number has its team, and makes a pending customer active", async () => {
  const { organizationId, team_id, customer_id } = await twoTeams()
  const account = await connect(it, organizationId, undefined, {}, { customer_id })
  expect(account).toMatchObject({ customer_id })
  expect(peers.told.directory.at(-1)).toMatchObject({ team_id, customer: { id: customer_id, name: 'Bakery' } })
  await connect(it, organizationId, undefined, {}, { customer_id })
  const events = await eventsOf(it.app, organizationId)
  expect(events.map(({ type }) => type)).toEqual(['customer.created', 'customer.updated'])
  expect(events[1]?.data).toMatchObject({ customer: { status: 'active' } })
})

test('connected again it stays with its customer, also with one that is archived', async () => {
  const { organizationId, customer_id } = await twoTeams()
  const phoneNumberId = newPhoneNumberId()
  await connect(it, organizationId, phoneNumberId, {}, { customer_id })
  expect(await connect(it, organizationId, phoneNumberId)).toMatchObject({ customer_id })
  await ask(it.app, archiveCustomer, undefined, { params: { id: customer_id }, caller: systemCaller(organizationId) })
  expect(await connect(it, organizationId, phoneNumberId)).toMatchObject({ customer_id })
})

test("another team than the customer's, an archived and a foreign customer are refused", async () => {
  const { organizationId, customer_id } = await twoTeams()
  const { id: team_id } = await ask(it.app, createTeam, { organization_id: organizationId, name: 'Third' })
  const elsewhere = connect(it, organizationId, undefined, {}, { customer_id, team_id })
  await expect(elsewhere).rejects.toMatchObject({ failure: 'invalid_field_value', param: 'team_id' })
  const foreign = await newCustomer(it.app, await newOrganization(it.app))
  for (const unknown of [foreign, newId('cus')]) {
    const refused = connect(it, organizationId, undefined, {}, { customer_id: unknown })
    await expect(refused).rejects.toMatchObject({ failure: 'resource_not_found', param: 'customer_id' })
  }
  await ask(it.app, archiveCustomer, undefined, { params: { id: customer_id }, caller: systemCaller(organizationId) })
  const archived = connect(it, organizationId, undefined, {}, { customer_id })
  await expect(archived).rejects.toMatchObject({ failure: 'customer_archived', param: 'customer_id' })
})
