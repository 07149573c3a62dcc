import { newId } from '@app/shared/values/ids.ts'
import { until } from '@app/test/until.ts'
import { beforeAll, expect, test } from 'vitest'
import type { DueAccount } from '../health/due-account.ts'
import { startPolling } from '../health/poll-accounts.ts'
import { getCustomer } from '../customers/get-customer.ts'
import { removeCustomerAccount } from '../customers/remove-customer-account.ts'
import { createSetupLink } from '../setup-links/create-setup-link.ts'
import { ask, connect, newPhoneNumberId, type TestApp } from '../testing/app.ts'
import { appWithPeers } from '../testing/app-with-peers.ts'
import { beginAt, dialogOf, openSetup, showNumbers } from '../testing/onboarding.ts'
import { adoptNumber, walksTo } from './adopt-number.ts'
import { completeSetup } from './complete-setup.ts'

const both = appWithPeers()
const { asked, setupOf } = both
let it: TestApp
beforeAll(() => void ({ it } = both))

test('a business account without a number waits for it; when it has one, the link is used', async () => {
  const opened = await openSetup(it)
  const { businessAccountId, phoneNumberId, customerId, token } = opened
  showNumbers(it.upstream, businessAccountId, [])
  const dialog = dialogOf(opened, await beginAt(it, opened), { event: 'account_only', phone_number_id: null })
  expect(await ask(it.app, completeSetup, dialog)).toMatchObject({
    number: { phone_number_id: null, registered: false },
  })
  expect(await setupOf(token)).toMatchObject({ state: 'active' })
  expect(await ask(it.app, getCustomer, undefined, opened.asOwner)).toMatchObject({
    status: 'pending',
    accounts: [{ phone_number_id: null, status: 'onboarding', customer_id: customerId }],
  })
  showNumbers(it.upstream, businessAccountId, [{ phoneNumberId }])
  await it.app.sql`update accounts set poll_at = now() where customer_id = ${customerId}`
  const polling = startPolling(it.app)
  await until(async () => expect(await setupOf(token)).toMatchObject({ state: 'consumed' }))
  await polling.stop()
  const { accounts, status } = await ask(it.app, getCustomer, undefined, opened.asOwner)
  expect(status).toBe('active')
  expect(accounts).toMatchObject([{ phone_number_id: phoneNumberId, status: 'onboarding' }])
  // Whoever asked for it holds it no more: it is due in some seconds, as any other that was just attached.
  const [row] = await it.app.sql`
    select poll_held_until < now() as is_free, poll_at < now() + interval '11 seconds' as is_soon from accounts
    where customer_id = ${customerId}
  `
  expect(row).toEqual({ isFree: true, isSoon: true })
})

type Shown = Array<{ phone_number_id: string | null; status: string }>

/** An account that waits for its number; the customer's one account after the platform was asked once more. */
async function waitingAt(opened: Awaited<ReturnType<typeof openSetup>>) {
  const dialog = dialogOf(opened, await beginAt(it, opened), { event: 'account_only', phone_number_id: null })
  await ask(it.app, completeSetup, dialog)
  return async (check: (accounts: Shown) => void | Promise<void>) => {
    await it.app.sql`
      update accounts set poll_at = now() where customer_id = ${opened.customerId} and phone_number_id is null
    `
    const polling = startPolling(it.app)
    await until(async () => check((await ask(it.app, getCustomer, undefined, opened.asOwner)).accounts))
    await polling.stop()
  }
}

test('of two customers that wait for a number of one business account each has an account of its own', async () => {
  const one = await openSetup(it)
  const { businessAccountId, organizationId } = one
  const other = { ...(await openSetup(it, {}, { organizationId })), businessAccountId }
  showNumbers(it.upstream, businessAccountId, [])
  for (const opened of [one, other]) {
    const dialog = dialogOf(opened, await beginAt(it, opened), { event: 'account_only', phone_number_id: null })
    await ask(it.app, completeSetup, dialog)
  }
  const accounts = await it.app.sql`
    select customer_id from accounts where organization_id = ${organizationId} order by created_at
  `
  expect(accounts).toEqual([one, other].map(({ customerId }) => ({ customerId })))
})

test('a business account whose link is over waits for no number any more, and a later link goes on with it', async () => {
  const opened = await openSetup(it)
  const { businessAccountId, phoneNumberId, linkId, organizationId, customerId } = opened
  showNumbers(it.upstream, businessAccountId, [])
  const polled = await waitingAt(opened)
  await it.app.sql`update setup_links set expires_at = now() - interval '1 ms' where id = ${linkId}`
  await polled((accounts) => expect(accounts).toMatchObject([{ phone_number_id: null, status: 'disconnected' }]))
  const [row] = await it.app.sql`select attached, sealed_token from accounts where customer_id = ${customerId}`
  expect(row).toEqual({ attached: false, sealedToken: null })

  const later = await ask(it.app, createSetupLink, {}, opened.asOwner)
  const token = later.setup_url.slice(later.setup_url.lastIndexOf('/') + 1)
  showNumbers(it.upstream, businessAccountId, [{ phoneNumberId }])
  const again = { ...opened, linkId: later.id, token }
  await ask(it.app, completeSetup, dialogOf(again, await beginAt(it, again)))
  const accounts = await ask(it.app, getCustomer, undefined, opened.asOwner)
  expect(accounts).toMatchObject({ accounts: [{ phone_number_id: phoneNumberId, status: 'onboarding' }] })
  expect(await it.app.sql`select 1 from accounts where organization_id = ${organizationId}`).toHaveLength(1)
})

test('of two that are asked for together one waits on when the link of the other is over', async () => {
  const one = await openSetup(it)
  const { organizationId } = one
  const other = await openSetup(it, {}, { organizationId })
  for (const opened of [one, other]) {
    showNumbers(it.upstream, opened.businessAccountId, [])
    await waitingAt(opened)
  }
  await it.app.sql`update setup_links set expires_at = now() - interval '1 ms' where id = ${one.linkId}`
  const claimed = await it.app.sql<DueAccount[]>`
    update accounts set poll_held_until = now() + interval '1 minute', poll_at = now() + interval '1 minute'
    where organization_id = ${organizationId}
    returning organization_id, id, business_account_id, poll_held_until::text as held_until
  `
  const over = claimed.find(({ businessAccountId }) => businessAccountId === one.businessAccountId)
  if (!over) throw new Error('no account')
  const signal = new AbortController().signal
  await adoptNumber(it.app, over, { token: 'EAAtoken', deadline: performance.now() + 5_000, signal })
  const left = await it.app.sql`
    select customer_id, attached from accounts where organization_id = ${organizationId} order by attached
  `
  expect(left).toEqual([
    { customerId: one.customerId, attached: false },
    { customerId: other.customerId, attached: true },
  ])
})

test('a stop waits for no answer about a business account without a number', async () => {
  const opened = await openSetup(it)
  const { businessAccountId, customerId } = opened
  showNumbers(it.upstream, businessAccountId, [])
  const dialog = dialogOf(opened, await beginAt(it, opened), { event: 'account_only', phone_number_id: null })
  await ask(it.app, completeSetup, dialog)
  it.upstream.answers.set(`/${businessAccountId}/phone_numbers`, 'silence')
  it.upstream.asked.length = 0
  await it.app.sql`update accounts set poll_at = now() where customer_id = ${customerId}`
  const polling = startPolling(it.app)
  await until(() => expect(asked(`/${businessAccountId}/phone_numbers`)).toBe(1))
  const stopsAt = performance.now()
  await polling.stop()
  expect(performance.now() - stopsAt).toBeLessThan(5_000)
})

test('of several numbers of a business account a waiting account gets the one that nobody has', async () => {
  const opened = await openSetup(it)
  const { businessAccountId, phoneNumberId, asOwner } = opened
  await ask(it.app, completeSetup, dialogOf(opened, await beginAt(it, opened)))
  const second = await ask(it.app, createSetupLink, {}, asOwner)
  const token = second.setup_url.slice(second.setup_url.lastIndexOf('/') + 1)
  const two = [{ phoneNumberId }, { phoneNumberId: newPhoneNumberId() }]
  showNumbers(it.upstream, businessAccountId, two)
  const polled = await waitingAt({ ...opened, linkId: second.id, token })
  const expected = new Set(two.map((number) => number.phoneNumberId))
  await polled((accounts) => expect(new Set(accounts.map((one) => one.phone_number_id))).toEqual(expected))
  expect(await setupOf(token)).toMatchObject({ state: 'consumed' })
})

test('an account that waits for its number is held no longer when the number just went to another', async () => {
  const opened = await openSetup(it)
  const { organizationId, customerId, businessAccountId, phoneNumberId } = opened
  showNumbers(it.upstream, businessAccountId, [])
  await ask(
    it.app,
    completeSetup,
    dialogOf(opened, await beginAt(it, opened), { event: 'account_only', phone_number_id: null }),
  )
  // Its state in the list is no word for it, so that it is asked itself.
  showNumbers(it.upstream, businessAccountId, [{ phoneNumberId, status: 'LINKED' }])
  const { promise: after, resolve: letAnswer } = Promise.withResolvers<void>()
  it.upstream.answers.set(`/${phoneNumberId}`, { body: { id: phoneNumberId, status: 'CONNECTED' }, after })
  it.upstream.asked.length = 0
  await it.app.sql`update accounts set poll_at = now() where customer_id = ${customerId}`
  const polling = startPolling(it.app)
  await until(() => expect(asked(`/${phoneNumberId}?`)).toBe(1))
  const wanted = { customer_id: customerId, business_account_id: businessAccountId }
  await connect(it, organizationId, phoneNumberId, {}, wanted)
  letAnswer()
  await until(async () => expect(await setupOf(opened.token)).toMatchObject({ state: 'consumed' }))
  await polling.stop()
  const held = await it.app.sql`
    select id from accounts where customer_id = ${customerId} and poll_held_until > now()
  `
  expect(held).toEqual([])
})

test('a number that was removed does not come back for an account that waits for a new one', async () => {
  const opened = await openSetup(it)
  const { organizationId, customerId, businessAccountId, phoneNumberId, asOwner } = opened
  await ask(it.app, completeSetup, dialogOf(opened, await beginAt(it, opened)))
  const wanted = { customer_id: customerId, business_account_id: businessAccountId }
  const { phone_number_id } = await connect(it, organizationId, newPhoneNumberId(), {}, wanted)
  const two = [{ phoneNumberId }, { phoneNumberId: phone_number_id ?? '' }]
  showNumbers(it.upstream, businessAccountId, two)
  const link = await ask(it.app, createSetupLink, {}, asOwner)
  const token = link.setup_url.slice(link.setup_url.lastIndexOf('/') + 1)
  const polled = await waitingAt({ ...opened, linkId: link.id, token })
  const params = { id: customerId, phone_number_id: phoneNumberId }
  await ask(it.app, removeCustomerAccount, undefined, { ...asOwner, params })
  await polled(async () => {
    const [row] = await it.app.sql`
      select poll_failures from accounts where customer_id = ${customerId} and phone_number_id is null
    `
    expect(row).toEqual({ pollFailures: 1 })
  })
  expect(await setupOf(token)).toMatchObject({ state: 'active' })

  const later = newPhoneNumberId()
  showNumbers(it.upstream, businessAccountId, [...two, { phoneNumberId: later }])
  const statuses = { [phoneNumberId]: 'disconnected', [phone_number_id ?? '']: 'connected', [later]: 'onboarding' }
  await polled((accounts) =>
    expect(Object.fromEntries(accounts.map((one) => [one.phone_number_id, one.status]))).toEqual(statuses),
  )
})

test('a business account whose only number is somebody else’s waits for one of its own, where the dialog told none', async () => {
  const first = await openSetup(it)
  await ask(it.app, completeSetup, dialogOf(first, await beginAt(it, first)))
  const { businessAccountId, phoneNumberId, organizationId } = first
  for (const known of [{ organizationId }, {}]) {
    const opened = { ...(await openSetup(it, {}, known)), businessAccountId }
    showNumbers(it.upstream, businessAccountId, [{ phoneNumberId }])
    const polled = await waitingAt(opened)
    expect(await setupOf(opened.token)).toMatchObject({ state: 'active' })
    const later = newPhoneNumberId()
    showNumbers(it.upstream, businessAccountId, [{ phoneNumberId }, { phoneNumberId: later }])
    await polled((accounts) => expect(accounts).toMatchObject([{ phone_number_id: later }]))
  }
})

test('a look for the number of an account reads the walks that brought it, and none of the organization’s others', async () => {
  const { sql } = it.app
  const organizationId = newId('org')
  await sql`
    insert into onboardings (organization_id, id, setup_link_id, step, account_id)
    select ${organizationId}, n::text, 'csl_1', 'done', 'acc_' || n / 3 from generate_series(1, 3000) n
  `
  await sql`analyze onboardings`
  const walks = walksTo(sql, { organizationId, id: 'acc_500' })
  const plan = await sql<{ 'QUERY PLAN': string }[]>`explain (analyze, timing off) ${walks}`
  const lines = plan.map(({ 'QUERY PLAN': line }) => line)
  expect(lines[0]).toMatch(/rows=3(\.00)? loops=1/)
  expect(lines.filter((line) => line.includes('Rows Removed by Filter'))).toEqual([])
})
