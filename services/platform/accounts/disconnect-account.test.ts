import { systemCaller } from '@app/shared/bus/ask.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { updateOrganization } from '../organizations/update-organization.ts'
import {
  ask,
  connect,
  newCustomer,
  newOrganization,
  newPhoneNumberId,
  startPeers,
  startTestApp,
  type TestApp,
} from '../testing/app.ts'
import { disconnectAccount } from './disconnect-account.ts'
import { listAccounts } from './list-accounts.ts'

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

const disconnect = (organization_id: string, phone_number_id: string) =>
  ask(it.app, disconnectAccount, { organization_id, phone_number_id })

async function withNumber(wanted: { customer_id?: string } = {}, organizationId?: string) {
  const organization = organizationId ?? (await newOrganization(it.app))
  const phoneNumberId = newPhoneNumberId()
  const { account_id: accountId } = await connect(it, organization, phoneNumberId, {}, wanted)
  const told = () => peers.told.messaging.filter(({ account_id }) => account_id === accountId)
  return { organizationId: organization, phoneNumberId, accountId, told }
}

test('a number of the organization itself is refused and detached everywhere before it answers, and stays readable', async () => {
  const { organizationId, phoneNumberId, accountId, told } = await withNumber()
  const shown = { phone_number_id: phoneNumberId, status: 'disconnected', customer_id: null }
  expect(await disconnect(organizationId, phoneNumberId)).toMatchObject({ account_id: accountId, ...shown })
  expect(told().at(-1)).toMatchObject({ attached: false, refusal: 'account_not_connected', version: 2 })
  const query = { status: 'all' } as const
  const { data } = await ask(it.app, listAccounts, undefined, { query, caller: systemCaller(organizationId) })
  expect(data).toMatchObject([shown])
})

test("a customer's number is detached too, also when the subscription has lapsed, and keeps its customer", async () => {
  const organizationId = await newOrganization(it.app)
  const customer_id = await newCustomer(it.app, organizationId)
  const { phoneNumberId } = await withNumber({ customer_id }, organizationId)
  await ask(it.app, updateOrganization, { organization_id: organizationId, subscription: 'lapsed' })
  expect(await disconnect(organizationId, phoneNumberId)).toMatchObject({ status: 'disconnected', customer_id })
  await expect(connect(it, await newOrganization(it.app), phoneNumberId)).resolves.toBeDefined()
})

test('all other numbers of the organization stay connected', async () => {
  const { organizationId, phoneNumberId } = await withNumber()
  const customer_id = await newCustomer(it.app, organizationId)
  const others = [await withNumber({}, organizationId), await withNumber({ customer_id }, organizationId)]
  await disconnect(organizationId, phoneNumberId)
  const rows = await it.app.sql`
    select phone_number_id from accounts where organization_id = ${organizationId} and attached order by id
  `
  expect(rows).toEqual(others.map((other) => ({ phoneNumberId: other.phoneNumberId })))
})

test('again answers the same, tells again and changes nothing', async () => {
  const { organizationId, phoneNumberId, told } = await withNumber()
  const first = await disconnect(organizationId, phoneNumberId)
  expect(await disconnect(organizationId, phoneNumberId)).toEqual(first)
  expect(told().map(({ version }) => version)).toEqual([1, 2, 2])
})

test('a number that another organization has by now stays there, whatever the one of before gives up', async () => {
  const { organizationId, phoneNumberId } = await withNumber()
  await disconnect(organizationId, phoneNumberId)
  await connect(it, await newOrganization(it.app), phoneNumberId)
  await disconnect(organizationId, phoneNumberId)
  const rows = await it.app.sql`select from accounts where phone_number_id = ${phoneNumberId} and attached`
  expect(rows).toHaveLength(1)
})

test("an unknown organization, an unknown number and another organization's are not found, and the field is named", async () => {
  const { organizationId, phoneNumberId } = await withNumber()
  for (const [organization, phone, param] of [
    [`${organizationId.slice(0, -4)}0000`, phoneNumberId, 'organization_id'],
    [organizationId, newPhoneNumberId(), 'phone_number_id'],
    [await newOrganization(it.app), phoneNumberId, 'phone_number_id'],
  ] as const) {
    await expect(disconnect(organization, phone)).rejects.toMatchObject({ failure: 'resource_not_found', param })
  }
})
