import { systemCaller } from '@app/shared/bus/ask.ts'
import type { Input } from '@app/shared/api/contract.ts'
import type { listAccounts as Contract } from '@app/shared/contracts/platform.ts'
import { newId } from '@app/shared/values/ids.ts'
import { untilSomebodyWaits } from '@app/test/lock-waits.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ask, newCustomer, newOrganization, newPhoneNumberId, startTestApp, type TestApp } from '../testing/app.ts'
import { getCustomer } from '../customers/get-customer.ts'
import { findAccount } from './find-account.ts'
import { findAccounts } from './find-accounts.ts'
import { listAccounts } from './list-accounts.ts'

let it: TestApp
beforeAll(async () => {
  it = await startTestApp()
})
afterAll(() => it.close())

interface Wanted {
  organizationId: string
  phoneNumberId?: string | null
  status?: string
  customerId?: string | null
  createdAt?: string
  attached?: boolean
}

async function insert(wanted: Wanted) {
  const id = newId('acc')
  const { organizationId, phoneNumberId = newPhoneNumberId(), status = 'connected', customerId = null } = wanted
  const { createdAt = '2026-01-01T00:00:00Z', attached = true } = wanted
  await it.app.sql`
    insert into accounts (organization_id, id, phone_number_id, business_account_id, team_id, status, customer_id,
      created_at, attached)
    select ${organizationId}, ${id}, ${phoneNumberId}, '900900', t.id, ${status}, ${customerId}, ${createdAt}, ${attached}
    from teams t where t.organization_id = ${organizationId}
  `
  return phoneNumberId
}

const list = (organizationId: string, query: Partial<Input<typeof Contract>['query']> = {}) =>
  ask(it.app, listAccounts, undefined, {
    query: { status: 'connected', ...query },
    caller: systemCaller(organizationId),
  })

const find = (organizationId: string, phone_number_id: string) =>
  ask(it.app, findAccount, undefined, { params: { phone_number_id }, caller: systemCaller(organizationId) })

test('lists the connected numbers of the organization, and with status=all every one, also without a number', async () => {
  const organizationId = await newOrganization(it.app)
  const connected = await insert({ organizationId, createdAt: '2026-01-03T00:00:00Z' })
  const disconnected = await insert({ organizationId, status: 'disconnected', createdAt: '2026-01-02T00:00:00Z' })
  await insert({ organizationId, status: 'onboarding', phoneNumberId: null, createdAt: '2026-01-01T00:00:00Z' })
  await insert({ organizationId: await newOrganization(it.app) })
  const page = await list(organizationId)
  expect(page).toMatchObject({ data: [{ phone_number_id: connected }], has_more: false, next_cursor: null })
  const all = await list(organizationId, { status: 'all' })
  expect(all.data.map(({ phone_number_id }) => phone_number_id)).toEqual([connected, disconnected, null])
})

test('the newest is first, also of those of one moment, in the list and of a customer', async () => {
  const organizationId = await newOrganization(it.app)
  const customerId = await newCustomer(it.app, organizationId)
  const own = { organizationId, customerId }
  const [first, second] = [await insert(own), await insert(own)]
  const newest = await insert({ ...own, createdAt: '2026-02-01T00:00:00Z' })
  const customer = { params: { id: customerId }, caller: systemCaller(organizationId) }
  const lists = [(await list(organizationId)).data, (await ask(it.app, getCustomer, undefined, customer)).accounts]
  for (const accounts of lists)
    expect(accounts.map(({ phone_number_id }) => phone_number_id)).toEqual([newest, second, first])
})

test("a customer's numbers alone; of one that nobody knows, none", async () => {
  const organizationId = await newOrganization(it.app)
  const customerId = await newCustomer(it.app, organizationId)
  const phoneNumberId = await insert({ organizationId, customerId })
  await insert({ organizationId })
  const { data } = await list(organizationId, { customer_id: customerId })
  expect(data).toMatchObject([{ phone_number_id: phoneNumberId, customer_id: customerId }])
  expect((await list(organizationId, { customer_id: newId('cus') })).data).toEqual([])
})

test("finds an organization's number, detached or not, and no other's", async () => {
  const organizationId = await newOrganization(it.app)
  const other = await newOrganization(it.app)
  const attached = (await insert({ organizationId })) ?? ''
  const detached = (await insert({ organizationId, attached: false, status: 'disconnected' })) ?? ''
  for (const phone_number_id of [attached, detached]) {
    expect(await find(organizationId, phone_number_id)).toMatchObject({ phone_number_id, customer_id: null })
    await expect(find(other, phone_number_id)).rejects.toMatchObject({
      failure: 'resource_not_found',
      param: undefined,
    })
  }
})

test("of some numbers finds an organization's, detached or not, and no other's", async () => {
  const organizationId = await newOrganization(it.app)
  const own = [await insert({ organizationId }), await insert({ organizationId, attached: false })].map(String)
  await insert({ organizationId })
  const foreign = String(await insert({ organizationId: await newOrganization(it.app) }))
  const body = { phone_number_ids: [...own, foreign, newPhoneNumberId()] }
  const found = await ask(it.app, findAccounts, body, { caller: systemCaller(organizationId) })
  expect(found.phone_number_ids.toSorted()).toEqual(own.toSorted())
})

test("one organization's lists of numbers leave connections for others", async () => {
  const organizationId = await newOrganization(it.app)
  let ended = 0
  const lists = await it.app.sql.begin(async (tx) => {
    // They take as long as those of thousands of numbers.
    await tx`lock table accounts`
    const all = Promise.allSettled(Array.from({ length: 30 }, () => list(organizationId).finally(() => ended++)))
    await untilSomebodyWaits(tx)
    await it.app.sql`select 1`
    expect(ended).toBe(0)
    return { all }
  })
  expect((await lists.all).filter(({ status }) => status === 'fulfilled')).toHaveLength(30)
})
