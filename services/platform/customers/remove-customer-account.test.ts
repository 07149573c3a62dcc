import { systemCaller } from '@app/shared/bus/ask.ts'
import { newId } from '@app/shared/values/ids.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { listAccounts } from '../accounts/list-accounts.ts'
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
import { removeCustomerAccount } from './remove-customer-account.ts'

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

const remove = (organizationId: string, id: string, phone_number_id: string) =>
  ask(it.app, removeCustomerAccount, undefined, {
    params: { id, phone_number_id },
    caller: systemCaller(organizationId),
  })

async function customerWithNumber() {
  const organizationId = await newOrganization(it.app)
  const customerId = await newCustomer(it.app, organizationId)
  const phoneNumberId = newPhoneNumberId()
  const { account_id: accountId } = await connect(it, organizationId, phoneNumberId, {}, { customer_id: customerId })
  const told = () => peers.told.messaging.filter(({ account_id }) => account_id === accountId)
  return { organizationId, customerId, phoneNumberId, told }
}

test('the number is refused and detached everywhere before it answers, stays readable, and keeps its customer', async () => {
  const { organizationId, customerId, phoneNumberId, told } = await customerWithNumber()
  const removed = { customer_id: customerId, phone_number_id: phoneNumberId, removed: true }
  expect(await remove(organizationId, customerId, phoneNumberId)).toEqual(removed)
  expect(told().at(-1)).toMatchObject({ attached: false, refusal: 'account_not_connected', version: 2 })
  const query = { status: 'all' } as const
  const { data } = await ask(it.app, listAccounts, undefined, { query, caller: systemCaller(organizationId) })
  expect(data).toMatchObject([{ phone_number_id: phoneNumberId, status: 'disconnected', customer_id: customerId }])
})

test('again answers the same, tells again and changes nothing', async () => {
  const { organizationId, customerId, phoneNumberId, told } = await customerWithNumber()
  const first = await remove(organizationId, customerId, phoneNumberId)
  expect(await remove(organizationId, customerId, phoneNumberId)).toEqual(first)
  expect(told().map(({ version }) => version)).toEqual([1, 2, 2])
})

test('an organization whose subscription has lapsed detaches none', async () => {
  const { organizationId, customerId, phoneNumberId } = await customerWithNumber()
  await ask(it.app, updateOrganization, { organization_id: organizationId, subscription: 'lapsed' })
  const refused = remove(organizationId, customerId, phoneNumberId)
  await expect(refused).rejects.toMatchObject({ failure: 'subscription_lapsed' })
})

test('a detached number may be connected elsewhere, and here again, with its customer', async () => {
  const { organizationId, customerId, phoneNumberId, told } = await customerWithNumber()
  await remove(organizationId, customerId, phoneNumberId)
  expect(await connect(it, organizationId, phoneNumberId)).toMatchObject({ customer_id: customerId })
  expect(told().at(-1)).toMatchObject({ attached: true, refusal: null, version: 3 })
  await remove(organizationId, customerId, phoneNumberId)
  await expect(connect(it, await newOrganization(it.app), phoneNumberId)).resolves.toBeDefined()
})

test("another customer's number, another organization's and an unknown one are not found", async () => {
  const { organizationId, customerId, phoneNumberId } = await customerWithNumber()
  const stranger = await customerWithNumber()
  const absent = [
    [organizationId, await newCustomer(it.app, organizationId), phoneNumberId],
    [organizationId, newId('cus'), phoneNumberId],
    [organizationId, customerId, newPhoneNumberId()],
    [stranger.organizationId, customerId, phoneNumberId],
    [stranger.organizationId, stranger.customerId, phoneNumberId],
  ] as const
  for (const asked of absent) {
    await expect(remove(...asked)).rejects.toMatchObject({ failure: 'resource_not_found', param: undefined })
  }
})
