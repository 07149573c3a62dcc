import { systemCaller } from '@app/shared/bus/ask.ts'
import { oneByWeight, oneOf, type Random, type Weighted } from '@app/test/faults/random.ts'
import { connectAccount } from '../accounts/connect-account.ts'
import { disconnectAccount } from '../accounts/disconnect-account.ts'
import { tellStates } from '../accounts/tell-states.ts'
import type { App } from '../app.ts'
import { archiveCustomer } from '../customers/archive-customer.ts'
import { removeCustomerAccount } from '../customers/remove-customer-account.ts'
import { restoreCustomer } from '../customers/restore-customer.ts'
import { updateCustomer } from '../customers/update-customer.ts'
import { settleReport } from '../health/account-reports.ts'
import { beginSetup } from '../onboarding/begin-setup.ts'
import { completeSetup } from '../onboarding/complete-setup.ts'
import { updateOrganization } from '../organizations/update-organization.ts'
import { registerNumber } from '../registration/register-number.ts'
import { createSetupLink } from '../setup-links/create-setup-link.ts'
import { revokeSetupLink } from '../setup-links/revoke-setup-link.ts'
import { ask } from './app.ts'
import type { Rivals } from './rivals.ts'

/** One that may happen at any moment; what the service refuses, it throws. */
type Act = (app: App, rivals: Rivals, random: Random) => Promise<unknown>

/** What happens, by how often it does. */
const acts: Weighted<Act>[] = [
  [3, connectNumber],
  [3, disconnectNumber],
  [2, takeFromCustomer],
  [8, changeCustomer],
  [2, archive],
  [3, restore],
  [6, makeLink],
  [1, revokeLink],
  [8, walkThroughDialog],
  [4, register],
  [1, changeSettings],
  [1, changeSubscription],
  [4, report],
  [4, showOtherwise],
  [3, askForNumbers],
  [1, endReports],
]

export const chooseAct = (random: Random): Act => oneByWeight(random, acts)

/** With such a chance of 1. */
const isLikely = (random: Random, chance: number) => random() < chance

function connectNumber(app: App, { organizationIds, customers, numbers }: Rivals, random: Random) {
  const organizationId = oneOf(random, organizationIds)
  const number = oneOf(random, numbers)
  const own = customers.filter((customer) => customer.organizationId === organizationId)
  const customer = isLikely(random, 0.5) ? oneOf(random, own) : undefined
  return ask(app, connectAccount, {
    organization_id: organizationId,
    phone_number_id: number.id,
    access_token: `EAA${random()}`,
    business_account_id: number.businessAccountId,
    ...(customer && { customer_id: customer.id }),
  })
}

function disconnectNumber(app: App, { organizationIds, numbers }: Rivals, random: Random) {
  const [organizationId, number] = [oneOf(random, organizationIds), oneOf(random, numbers)]
  return ask(app, disconnectAccount, { organization_id: organizationId, phone_number_id: number.id })
}

function takeFromCustomer(app: App, rivals: Rivals, random: Random) {
  const customer = oneOf(random, rivals.customers)
  const params = { id: customer.id, phone_number_id: oneOf(random, rivals.numbers).id }
  return ask(app, removeCustomerAccount, undefined, { params, caller: systemCaller(customer.organizationId) })
}

function changeCustomer(app: App, { customers }: Rivals, random: Random) {
  const customer = oneOf(random, customers)
  const changes = oneOf(random, [
    { status: 'active' as const },
    { status: 'suspended' as const },
    { name: 'Bakery Bruno' },
    { name: 'Bakery Berta' },
    { metadata: { ovens: 1 } },
    { metadata: { ovens: 2 } },
  ])
  return ask(app, updateCustomer, changes, {
    params: { id: customer.id },
    caller: systemCaller(customer.organizationId),
  })
}

function archive(app: App, { customers }: Rivals, random: Random) {
  const customer = oneOf(random, customers)
  const asOwner = { params: { id: customer.id }, caller: systemCaller(customer.organizationId) }
  return ask(app, archiveCustomer, undefined, asOwner)
}

function restore(app: App, { customers }: Rivals, random: Random) {
  return ask(app, restoreCustomer, { customer_id: oneOf(random, customers).id })
}

async function makeLink(app: App, { customers, links }: Rivals, random: Random) {
  const { organizationId, id: customerId } = oneOf(random, customers)
  const asOwner = { params: { id: customerId }, caller: systemCaller(organizationId) }
  const { id, setup_url: url } = await ask(app, createSetupLink, {}, asOwner)
  links.push({ organizationId, customerId, id, token: url.slice(url.lastIndexOf('/') + 1) })
}

async function revokeLink(app: App, { links }: Rivals, random: Random) {
  if (links.length === 0) return
  const link = oneOf(random, links)
  const params = { id: link.customerId, link_id: link.id }
  await ask(app, revokeSetupLink, undefined, { params, caller: systemCaller(link.organizationId) })
}

/** The dialog may tell the number, or leave it to be looked for. */
async function walkThroughDialog(app: App, { links, numbers }: Rivals, random: Random) {
  if (links.length === 0) return
  const { token, id } = oneOf(random, links)
  const { state } = await ask(app, beginSetup, { token, setup_link_id: id })
  const number = oneOf(random, numbers)
  const isTold = isLikely(random, 0.6)
  await ask(app, completeSetup, {
    token,
    state,
    code: 'AQcode',
    business_account_id: number.businessAccountId,
    phone_number_id: isTold ? number.id : null,
    event: isTold ? 'number' : oneOf(random, ['account_only', 'business_app'] as const),
  })
}

function register(app: App, { organizationIds, numbers }: Rivals, random: Random) {
  const caller = systemCaller(oneOf(random, organizationIds))
  const params = { phone_number_id: oneOf(random, numbers).id }
  return ask(app, registerNumber, { pin: '123456' }, { params, caller })
}

function changeSettings(app: App, { organizationIds }: Rivals, random: Random) {
  const settings = { window_check: oneOf(random, ['strict', 'upstream'] as const) }
  return ask(app, updateOrganization, { organization_id: oneOf(random, organizationIds), settings })
}

function changeSubscription(app: App, { organizationIds }: Rivals, random: Random) {
  const subscription = isLikely(random, 0.3) ? 'lapsed' : 'active'
  return ask(app, updateOrganization, { organization_id: oneOf(random, organizationIds), subscription })
}

/** As it comes from messaging: an error of a send, or a callback about the business account. */
async function report(app: App, { organizationIds, numbers }: Rivals, random: Random) {
  const organizationId = oneOf(random, organizationIds)
  const { id, businessAccountId } = oneOf(random, numbers)
  const code = oneOf(random, [131031, 190, 4, null])
  const event = oneOf(random, ['PARTNER_REMOVED', 'ACCOUNT_RECONNECTED', 'ACCOUNT_OFFBOARDED'])
  const told = {
    phone_number_id: isLikely(random, 0.7) ? id : null,
    business_account_id: businessAccountId,
    code,
    change: code === null ? { field: 'account_update', value: { event } } : null,
    at: new Date().toISOString(),
  }
  const states = await app.sql.begin((tx) => settleReport(tx, organizationId, told, app.upstream.appId))
  await tellStates(app, states, systemCaller(organizationId))
}

/** The platform shows a number otherwise from now on. */
function showOtherwise(_app: App, { numbers, show }: Rivals, random: Random) {
  oneOf(random, numbers).shown = {
    status: oneOf(random, ['CONNECTED', 'PENDING', 'RESTRICTED', 'DISCONNECTED']),
    is_on_biz_app: isLikely(random, 0.2),
  }
  show()
  return Promise.resolve()
}

/** As if all numbers were due that nobody asks for. */
async function askForNumbers({ sql }: App, { organizationIds, wakePolling }: Rivals) {
  const free = await sql<{ id: string }[]>`
    select id from accounts where poll_held_until < now() and organization_id = any(${organizationIds}::text[])
  `
  // One by one: together they would wait for each other's rows.
  for (const { id } of free) await sql`update accounts set poll_at = now() where id = ${id}`
  wakePolling()
}

/** As if what was reported were long ago. */
async function endReports({ sql }: App, { organizationIds }: Rivals) {
  const reported = await sql<{ id: string }[]>`
    select id from accounts where reported_until > now() and organization_id = any(${organizationIds}::text[])
  `
  for (const { id } of reported) await sql`update accounts set reported_until = now() where id = ${id}`
}
