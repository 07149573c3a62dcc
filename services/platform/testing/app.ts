import { randomBytes, randomInt } from 'node:crypto'
import { systemCaller } from '@app/shared/bus/ask.ts'
import { createInTurn } from '@app/shared/bus/in-turn.ts'
import type { Answer, Caller, Handler, Input, Rpc, WholeAnswer } from '@app/shared/api/contract.ts'
import type { createCustomer as Customer } from '@app/shared/contracts/customers.ts'
import { putAccount } from '@app/shared/contracts/directory.ts'
import { putSender } from '@app/shared/contracts/messaging.ts'
import type { connectAccount as Account, createOrganization as Organization } from '@app/shared/contracts/platform.ts'
import type { EventHeaders } from '@app/shared/events/events.ts'
import { startRelay } from '@app/shared/events/relay.ts'
import { serve } from '@app/shared/bus/rpc.ts'
import { testService, type TestService } from '@app/test/service.ts'
import type { AccountState } from '../accounts/account-states.ts'
import { connectAccount } from '../accounts/connect-account.ts'
import type { App } from '../app.ts'
import { createChangesInLine } from '../health/changes-in-line.ts'
import { createCustomer } from '../customers/create-customer.ts'
import { createOrganization } from '../organizations/create-organization.ts'
import { rateTiers } from '../organizations/rate-tiers.ts'
import { createUpstream } from '@app/shared/outside/upstream.ts'
import { startTestUpstream } from './upstream.ts'

/** The service without its main page: its handlers are called with `app`. */
export async function startTestApp(starting: Promise<TestService> = testService('platform')) {
  const service = await starting
  const upstream = await startTestUpstream()
  const app: App = {
    ...service,
    relay: startRelay(service),
    inTurn: createInTurn(),
    searchInTurn: createInTurn('searches', 1),
    listInTurn: createInTurn('lists of numbers', 1),
    readInTurn: createInTurn('reads'),
    changeInLine: createChangesInLine(),
    sealKeys: { current: 'k1', byId: new Map([['k1', randomBytes(32)]]) },
    cursorKeys: { current: 'k1', byId: new Map([['k1', randomBytes(32)]]) },
    publicUrl: 'https://messaging.example',
    upstreamAppSecret: 'app-secret',
    rateTiers: rateTiers.parse('{}'),
    upstream: createUpstream({
      UPSTREAM_BASE_URL: upstream.url,
      UPSTREAM_API_VERSION: 'v23.0',
      UPSTREAM_APP_ID: '1234567890',
      UPSTREAM_KEEPALIVE_MS: 1_000,
      UPSTREAM_SUBSCRIBE_APPS: true,
    }),
  }
  return {
    app,
    upstream,
    async close() {
      await app.relay.stop()
      await app.upstream.close()
      await upstream.close()
      await service.close()
    },
  }
}

export type TestApp = Awaited<ReturnType<typeof startTestApp>>

/** Answers for messaging and directory, and keeps what they were told. */
export async function startPeers(app: App) {
  const told = { messaging: [] as AccountState[], directory: [] as AccountState[] }
  const take =
    (states: AccountState[]) =>
    (_: unknown, { body }: { body: AccountState }) => {
      states.push(body)
      return Promise.resolve({ version: body.version })
    }
  const messaging = await serve({ ...app, name: 'messaging' }, { putSender }, { putSender: take(told.messaging) })
  const directory = await serve({ ...app, name: 'directory' }, { putAccount }, { putAccount: take(told.directory) })
  return { told, stop: () => Promise.all([messaging.stop(), directory.stop()]) }
}

/**
 * Asks a handler as the bus does: with a body alone, for an administrator, unless told otherwise. Of an answer in bytes it
 * answers what the client gets as `data`.
 */
export async function ask<C extends Rpc>(
  app: App,
  handler: Handler<App, C>,
  body: Input<C>['body'],
  { caller = systemCaller(), ...input }: Partial<Input<C>> & { caller?: Caller } = {},
): Promise<Answer<C>> {
  const answer = await handler(app, { params: {}, query: {}, ...input, body } as Input<C>, caller)
  const { whole, body: bytes } = answer as Partial<WholeAnswer>
  if (!whole) return answer as Answer<C>
  const envelope = JSON.parse(Buffer.from(bytes ?? []).toString()) as { data: Answer<C> }
  return envelope.data
}

/** A new organization's id. */
export async function newOrganization(app: App, fields: Partial<Input<typeof Organization>['body']> = {}) {
  const { id } = await ask(app, createOrganization, { name: 'Acme', ...fields })
  return id
}

/** A new customer's id. */
export async function newCustomer(app: App, organizationId: string, fields: Partial<NewCustomer> = {}) {
  const caller = systemCaller(organizationId)
  const { id } = await ask(app, createCustomer, { name: 'Bakery', ...fields }, { caller })
  return id
}

type NewCustomer = Input<typeof Customer>['body']

export const newPhoneNumberId = () => `1${randomInt(1e10).toString().padStart(10, '0')}`

/** Has the upstream know a number, and what it answers of it. */
export function knowNumber({ upstream }: Pick<TestApp, 'upstream'>, phoneNumberId: string, fields: object = {}) {
  const number = { display_phone_number: '+1 555-078-3881', verified_name: 'Acme Support', status: 'CONNECTED' }
  upstream.answers.set(`/${phoneNumberId}`, { body: { id: phoneNumberId, ...number, ...fields } })
  upstream.answers.set('/900900/subscribed_apps', { body: { success: true } })
}

/** Connects a number that the upstream knows; peers must be there. */
export async function connect(
  test: TestApp,
  organizationId: string,
  phoneNumberId = newPhoneNumberId(),
  fields = {},
  wanted: Partial<Input<typeof Account>['body']> = {},
) {
  knowNumber(test, phoneNumberId, fields)
  return ask(test.app, connectAccount, {
    organization_id: organizationId,
    phone_number_id: phoneNumberId,
    access_token: 'EAAtoken',
    business_account_id: '900900',
    ...wanted,
  })
}

/** What the outbox holds of an organization's public events, in their order. */
export async function eventsOf({ sql }: App, organizationId: string) {
  const rows = await sql<{ headers: EventHeaders; body: { type: string; data: Record<string, unknown> } }[]>`
    select headers, convert_from(payload, 'UTF8')::json as body from outbox
    where headers ->> 'organization' = ${organizationId} and headers ? 'type' order by seq
  `
  return rows.map(({ headers, body }) => ({
    type: body.type,
    data: body.data,
    line: headers.line,
    phone: headers.phone,
  }))
}
