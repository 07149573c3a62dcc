import { randomUUID } from 'node:crypto'
import type { Caller, Handler, Input, Rpc } from '@app/shared/api/contract.ts'
import { Problem, type FailureName } from '@app/shared/api/problem.ts'
import { systemCaller } from '@app/shared/bus/ask.ts'
import { accountReported } from '@app/shared/contracts/messaging.ts'
import { openDatabase, type Sql } from '@app/shared/database/database.ts'
import { emit } from '@app/shared/events/events.ts'
import { provision } from '@app/shared/events/provision.ts'
import { startRelay } from '@app/shared/events/relay.ts'
import { insistTwice, type SteppedFlow, testEachStep } from '@app/test/each-step.ts'
import { type SteppedService, steppedService } from '@app/test/service.ts'
import { until } from '@app/test/until.ts'
import { afterAll, beforeAll, expect } from 'vitest'
import { startHousekeeping } from '@app/shared/database/housekeeping.ts'
import { apiCalls, recordCalls } from './api-log/record-calls.ts'
import { connectAccount } from './accounts/connect-account.ts'
import { disconnectAccount } from './accounts/disconnect-account.ts'
import { archiveCustomer } from './customers/archive-customer.ts'
import { createCustomer } from './customers/create-customer.ts'
import { removeCustomerAccount } from './customers/remove-customer-account.ts'
import { restoreCustomer } from './customers/restore-customer.ts'
import { updateCustomer } from './customers/update-customer.ts'
import { authenticateKey } from './keys/authenticate-key.ts'
import { consumeAccountReports } from './health/account-reports.ts'
import { startPolling } from './health/poll-accounts.ts'
import { createKey } from './keys/create-key.ts'
import { hashOf } from './keys/keys.ts'
import { beginSetup } from './onboarding/begin-setup.ts'
import { completeSetup } from './onboarding/complete-setup.ts'
import { startResuming } from './onboarding/resume-onboardings.ts'
import { createOrganization } from './organizations/create-organization.ts'
import { updateOrganization } from './organizations/update-organization.ts'
import { registerNumber } from './registration/register-number.ts'
import { createSetupLink } from './setup-links/create-setup-link.ts'
import { revokeSetupLink } from './setup-links/revoke-setup-link.ts'
import { updateSetupLink } from './setup-links/update-setup-link.ts'
import {
  ask,
  connect,
  eventsOf,
  knowNumber,
  newCustomer,
  newOrganization,
  newPhoneNumberId,
  startPeers,
  startTestApp,
  type TestApp,
} from './testing/app.ts'
import { beginAt, dialogOf, openSetup, showNumbers } from './testing/onboarding.ts'

let service: SteppedService
let it: TestApp
let peers: Awaited<ReturnType<typeof startPeers>>
/** Past the proxy. */
let sql: Sql
beforeAll(async () => {
  service = await steppedService('platform')
  it = await startTestApp(Promise.resolve(service))
  // Its own steps would be counted among those of the flows.
  await it.app.relay.stop()
  await provision(it.app.nc)
  const housekeeping = await startHousekeeping(it.app, { partitions: [apiCalls] })
  await housekeeping.stop()
  peers = await startPeers(it.app)
  sql = openDatabase(service.databaseUrl, 'platform')
})
afterAll(async () => {
  await peers.stop()
  await sql.end({ timeout: 1 })
  await it.close()
})

/** A caller with a key of its own, as a client has that asks again. */
const withKey = (organizationId: string): Caller => ({
  ...systemCaller(organizationId),
  idempotency: { key: randomUUID(), fingerprint: 'same' },
})

/** What an organization has in the end. */
async function seenOf(organizationId: string) {
  const rows = {
    teams: await sql`select name from teams where organization_id = ${organizationId}`,
    customers: await sql`
      select name, status, first_number_at is not null as has_number from customers
      where organization_id = ${organizationId}`,
    links: await sql`
      select status, account_id is not null as has_account, success_redirect_url from setup_links
      where organization_id = ${organizationId}`,
    accounts: await sql`
      select status, attached, sealed_token is not null as has_token, customer_id is not null as has_customer,
        poll_held_until < now() as is_free, phone_number_id is not null as has_number
      from accounts where organization_id = ${organizationId}`,
    walks: await sql`
      select step, sealed_token is not null as has_token, account_id is not null as has_account, due_at is not null as is_due
      from onboardings where organization_id = ${organizationId}`,
  }
  return {
    events: (await eventsOf(it.app, organizationId)).map(({ type }) => type),
    isTold: await isTold(organizationId),
    ...Object.fromEntries(Object.entries(rows).map(([name, found]) => [name, [...found]])),
  }
}

/** Whether the last that is told of each number is what it is, and what organizations' teams are. */
async function isTold(organizationId: string) {
  const late = await sql`
    select a.id from accounts a left join lateral (
      select (convert_from(payload, 'UTF8')::json ->> 'version')::bigint as version from outbox
      where headers ->> 'organization' = ${organizationId} and subject = 'event.platform.account-changed'
        and convert_from(payload, 'UTF8')::json ->> 'account_id' = a.id
      order by seq desc limit 1
    ) e on true
    where a.organization_id = ${organizationId} and a.phone_number_id is not null and a.version is distinct from e.version
  `
  return late.length === 0
}

/** A second time there is nothing left to do. */
const unless = (failure: FailureName) => (err: unknown) => {
  if (!(err instanceof Problem && err.failure === failure)) throw err
}

type Flow = Awaited<ReturnType<SteppedFlow['begin']>>

let begun = 0

/** Of every second flow the other instance is asked again, which is not cut. */
function flowOf(organizationId: string, question: (app: TestApp['app']) => Promise<unknown>): Flow {
  const again = begun++ % 2 === 0 ? it.app : { ...it.app, sql }
  return {
    act: () => insistTwice((asked) => question(asked === 0 ? it.app : again)),
    seen: () => seenOf(organizationId),
  }
}

const asking = <C extends Rpc>(
  organizationId: string,
  handler: Handler<TestApp['app'], C>,
  input: Partial<Input<C>>,
  caller: Caller = systemCaller(organizationId),
): Flow => flowOf(organizationId, (app) => ask(app, handler, input.body as Input<C>['body'], { ...input, caller }))

/** An organization whose customer has a connected number. */
async function withNumber(fields: object = {}) {
  const organizationId = await newOrganization(it.app)
  const customerId = await newCustomer(it.app, organizationId)
  const account = await connect(it, organizationId, undefined, fields, { customer_id: customerId })
  return { organizationId, customerId, phoneNumberId: account.phone_number_id ?? '', accountId: account.account_id }
}

const connected = ['customer.created', 'customer.updated']
const opened = ['customer.created', 'customer.setup_link.created']
const onboarded = [...opened, 'customer.onboarded', 'customer.setup_link.consumed']

/** Whoever goes on by itself does so until nothing is due; as if the time had come to which a walk was put off or held. */
async function resume(organizationId: string) {
  await sql`update onboardings set held_until = '-infinity' where organization_id = ${organizationId}`
  const resuming = startResuming(it.app)
  await until(async () => {
    const due = await sql`
      update onboardings set held_until = '-infinity', due_at = now()
      where organization_id = ${organizationId} and due_at > now()
      returning id
    `
    const waiting = await sql`
      select id from onboardings where organization_id = ${organizationId} and due_at is not null
    `
    if (due.length > 0) resuming.wake()
    expect([...waiting]).toEqual([])
  })
  await resuming.stop()
}

/** A walk from a setup link, as the browser asks for its end. */
async function walking(more: Parameters<typeof dialogOf>[2] = {}, numbers?: object[]): Promise<Flow> {
  const setup = await openSetup(it)
  const { organizationId, phoneNumberId, businessAccountId } = setup
  if (numbers)
    showNumbers(
      it.upstream,
      businessAccountId,
      numbers.map((shown) => ({ phoneNumberId, ...shown })),
    )
  it.upstream.answers.set(`/${phoneNumberId}/smb_app_data`, { body: { success: true } })
  const body = dialogOf(setup, await beginAt(it, setup), more)
  return {
    ...flowOf(organizationId, async (app) => (await ask(app, completeSetup, body)).number),
    settle: () => resume(organizationId),
  }
}

/** Whoever asks for numbers does so until this one is asked for, and nobody holds it. */
async function poll(organizationId: string) {
  const polling = startPolling(it.app)
  const asked = async () => {
    polling.wake()
    const rows = await sql`
      select id from accounts where organization_id = ${organizationId} and poll_at > now() and poll_held_until < now()
    `
    expect(rows).toHaveLength(1)
  }
  try {
    await until(asked, 9_000)
  } finally {
    await polling.stop()
  }
}

/** As messaging reports it; its event comes past the proxy. */
async function report(organizationId: string, phoneNumberId: string) {
  const relay = startRelay({ ...service, sql })
  const reports = consumeAccountReports(it.app, { wake() {}, stop: () => Promise.resolve() })
  const data = { phone_number_id: phoneNumberId, business_account_id: '900900', code: 190, change: null }
  await sql.begin((tx) => emit(tx, accountReported, data, { organizationId, id: 'a' }))
  relay.wake()
  await until(async () => {
    expect(await sql`select from handled_events where event_id = ${`${organizationId}:a`}`).toHaveLength(1)
  })
  await reports.stop()
  await relay.stop()
}

const flows: Record<string, { begin: () => Promise<Flow>; events: string[] }> = {
  'create an organization': {
    events: [],
    async begin() {
      const organizations: string[] = []
      return {
        ...flowOf('', async (app) => {
          organizations.push((await ask(app, createOrganization, { name: 'Acme' })).id)
        }),
        // One whose answer was lost is another one, and whole.
        seen: () => seenOf(organizations.at(-1) ?? ''),
      }
    },
  },
  'create a customer': {
    events: ['customer.created'],
    async begin() {
      const organizationId = await newOrganization(it.app)
      return asking(organizationId, createCustomer, { body: { name: 'Bakery' } }, withKey(organizationId))
    },
  },
  'change a customer': {
    events: [...connected, 'customer.updated'],
    async begin() {
      const { organizationId, customerId } = await withNumber()
      const body = { name: 'Bakery Bruno', status: 'suspended' as const }
      return asking(organizationId, updateCustomer, { params: { id: customerId }, body })
    },
  },
  'archive a customer': {
    events: [...onboarded, 'customer.archived'],
    async begin() {
      const setup = await openSetup(it)
      const { organizationId, customerId } = setup
      await ask(it.app, completeSetup, dialogOf(setup, await beginAt(it, setup)))
      return asking(organizationId, archiveCustomer, { params: { id: customerId } })
    },
  },
  'restore a customer': {
    events: [...connected, 'customer.archived', 'customer.updated'],
    async begin() {
      const { organizationId, customerId } = await withNumber()
      const caller = systemCaller(organizationId)
      await ask(it.app, archiveCustomer, undefined, { params: { id: customerId }, caller })
      return asking(organizationId, restoreCustomer, { body: { customer_id: customerId } })
    },
  },
  'remove a number from a customer': {
    events: connected,
    async begin() {
      const { organizationId, customerId: id, phoneNumberId: phone_number_id } = await withNumber()
      return asking(organizationId, removeCustomerAccount, { params: { id, phone_number_id } })
    },
  },
  'create a setup link': {
    events: opened,
    async begin() {
      const organizationId = await newOrganization(it.app)
      const id = await newCustomer(it.app, organizationId)
      return asking(organizationId, createSetupLink, { params: { id }, body: {} }, withKey(organizationId))
    },
  },
  'change a setup link': {
    events: opened,
    async begin() {
      const { organizationId, customerId: id, linkId: link_id } = await openSetup(it)
      const body = { success_redirect_url: 'https://app.example/ok' }
      return asking(organizationId, updateSetupLink, { params: { id, link_id }, body })
    },
  },
  'revoke a setup link': {
    events: opened,
    async begin() {
      const { organizationId, customerId: id, linkId: link_id } = await openSetup(it)
      const params = { id, link_id }
      const caller = systemCaller(organizationId)
      return flowOf(organizationId, (app) =>
        ask(app, revokeSetupLink, undefined, { params, caller }).then(() => {}, unless('setup_link_inactive')),
      )
    },
  },
  'connect a number': {
    events: connected,
    async begin() {
      const organizationId = await newOrganization(it.app)
      const customer_id = await newCustomer(it.app, organizationId)
      const phone_number_id = newPhoneNumberId()
      knowNumber(it, phone_number_id)
      const body = { organization_id: organizationId, phone_number_id, customer_id }
      return asking(organizationId, connectAccount, {
        body: { ...body, access_token: 'EAAtoken', business_account_id: '900900' },
      })
    },
  },
  'disconnect a number': {
    events: connected,
    async begin() {
      const { organizationId, phoneNumberId } = await withNumber()
      const body = { organization_id: organizationId, phone_number_id: phoneNumberId }
      return asking(organizationId, disconnectAccount, { body })
    },
  },
  'register a number': {
    events: connected,
    async begin() {
      const { organizationId, phoneNumberId } = await withNumber({ status: 'PENDING' })
      it.upstream.answers.set(`/${phoneNumberId}/register`, { body: { success: true } })
      knowNumber(it, phoneNumberId, { status: 'CONNECTED' })
      const input = { params: { phone_number_id: phoneNumberId }, body: { pin: '123456' } }
      const caller = withKey(organizationId)
      return {
        ...asking(organizationId, registerNumber, input, caller),
        seen: async () => ({
          ...(await seenOf(organizationId)),
          isRegisteredTwice:
            it.upstream.asked.filter(({ line }) => line.endsWith(`/${phoneNumberId}/register`)).length > 1,
        }),
      }
    },
  },
  'create a key': {
    events: [],
    async begin() {
      const organizationId = await newOrganization(it.app)
      const keys: string[] = []
      return {
        ...flowOf(organizationId, async (app) => {
          keys.push((await ask(app, createKey, { organization_id: organizationId, label: 'main' })).key)
        }),
        // One whose answer was lost is another one, of which nobody knows.
        async seen() {
          const { state } = await ask(it.app, authenticateKey, { key_hash: hashOf(keys.at(-1) ?? '') })
          return { ...(await seenOf(organizationId)), key: state }
        },
      }
    },
  },
  'change an organization': {
    events: connected,
    async begin() {
      const { organizationId } = await withNumber()
      const body = { organization_id: organizationId, subscription: 'lapsed' as const, name: 'Acme Inc' }
      return asking(organizationId, updateOrganization, { body })
    },
  },
  'begin a walk': {
    events: opened,
    async begin() {
      const { organizationId, token, linkId } = await openSetup(it)
      return {
        ...flowOf(organizationId, (app) => ask(app, beginSetup, { token, setup_link_id: linkId }).then(() => {})),
        seen: async () => ({ ...(await seenOf(organizationId)), walks: 'may be several' }),
      }
    },
  },
  'calls that are recorded': {
    events: [],
    async begin() {
      const organizationId = await newOrganization(it.app)
      const body = {
        batch: randomUUID(),
        first_request: 'req',
        last_request: 'req',
        began: new Date().toISOString(),
        callers: [{ organization_id: organizationId, key_id: 'key', ip: '127.0.0.1' }],
        calls: '0 1000 1 req 200 GET /v1/me ',
      }
      return {
        ...flowOf(organizationId, (app) => ask(app, recordCalls, body).then(() => {})),
        async seen() {
          const calls = await sql`select calls from api_calls where ${organizationId} = any(organization_ids)`
          return { ...(await seenOf(organizationId)), calls: [...calls] }
        },
      }
    },
  },
  'a number that is asked for': {
    events: connected,
    async begin() {
      const { organizationId, phoneNumberId } = await withNumber()
      knowNumber(it, phoneNumberId, { status: 'RESTRICTED', verified_name: 'New Name' })
      // Numbers of other flows are due too: to ask for them is no step of this one.
      await sql`
        update accounts set poll_at = case when organization_id = ${organizationId} then now() else now() + interval '1 h' end
      `
      return { act: () => poll(organizationId), seen: () => seenOf(organizationId) }
    },
  },
  'a number that something is reported of': {
    events: connected,
    async begin() {
      const { organizationId, phoneNumberId } = await withNumber()
      return { act: () => report(organizationId, phoneNumberId), seen: () => seenOf(organizationId) }
    },
  },
  'a walk with a number': { events: onboarded, begin: () => walking() },
  'a walk without a word of the number': {
    events: onboarded,
    begin: () => walking({ event: 'account_only', phone_number_id: null }),
  },
  'a walk of a number that stays in the phone': {
    events: onboarded,
    begin: () =>
      walking({ event: 'business_app', phone_number_id: null }, [{ is_on_biz_app: true, status: 'CONNECTED' }]),
  },
  'a walk without a number yet': {
    events: opened,
    begin: () => walking({ event: 'account_only', phone_number_id: null }, []),
  },
}

testEachStep(
  () => service.steps,
  Object.fromEntries(
    Object.entries(flows).map(([name, { begin, events }]) => [name, { begin, expected: { events, isTold: true } }]),
  ),
)
