import { randomBytes, randomInt } from 'node:crypto'
import { systemCaller } from '@app/shared/ask.ts'
import type { Answer, Caller, Handler, Input, Rpc } from '@app/shared/contract.ts'
import { putAccount } from '@app/shared/contracts/directory.ts'
import { putSender } from '@app/shared/contracts/messaging.ts'
import type { createOrganization as Organization } from '@app/shared/contracts/platform.ts'
import { startRelay } from '@app/shared/relay.ts'
import { serve } from '@app/shared/rpc.ts'
import { testService } from '@app/test/service.ts'
import type { AccountState } from '../accounts/account-states.ts'
import { connectAccount } from '../accounts/connect-account.ts'
import type { App } from '../app.ts'
import { createOrganization } from '../organizations/create-organization.ts'
import { rateTiers } from '../organizations/rate-tiers.ts'
import { createUpstream } from '@app/shared/upstream.ts'
import { startTestUpstream } from './upstream.ts'

/** The service without its main page: its handlers are called with `app`. */
export async function startTestApp() {
  const service = await testService('platform')
  const upstream = await startTestUpstream()
  const app: App = {
    ...service,
    relay: startRelay(service),
    sealKeys: { current: 'k1', byId: new Map([['k1', randomBytes(32)]]) },
    upstreamApp: { id: '1000', secret: 'app-secret' },
    rateTiers: rateTiers.parse('{}'),
    upstream: createUpstream({
      UPSTREAM_BASE_URL: upstream.url,
      UPSTREAM_API_VERSION: 'v23.0',
      UPSTREAM_KEEPALIVE_MS: 1_000,
      UPSTREAM_SUBSCRIBE_APPS: true,
    }),
  }
  return {
    app,
    upstream,
    async close() {
      await app.relay.stop()
      await app.upstream.agent.close()
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

/** Asks a handler as the bus does: with a body alone, for an administrator, unless told otherwise. */
export async function ask<C extends Rpc>(
  app: App,
  handler: Handler<App, C>,
  body: Input<C>['body'],
  { caller = systemCaller(), ...input }: Partial<Input<C>> & { caller?: Caller } = {},
): Promise<Answer<C>> {
  const answer = await handler(app, { params: {}, query: {}, ...input, body } as Input<C>, caller)
  return answer as Answer<C>
}

/** A new organization's id. */
export async function newOrganization(app: App, fields: Partial<Input<typeof Organization>['body']> = {}) {
  const { id } = await ask(app, createOrganization, { name: 'Acme', ...fields })
  return id
}

export const newPhoneNumberId = () => `1${randomInt(1e10).toString().padStart(10, '0')}`

/** Has the upstream know a number, and what it answers of it. */
export function knowNumber({ upstream }: Pick<TestApp, 'upstream'>, phoneNumberId: string, fields: object = {}) {
  const number = { display_phone_number: '+1 555-078-3881', verified_name: 'Acme Support', status: 'CONNECTED' }
  upstream.answers.set(`/${phoneNumberId}`, { body: { id: phoneNumberId, ...number, ...fields } })
  upstream.answers.set('/900900/subscribed_apps', { body: { success: true } })
}

/** Connects a number that the upstream knows; peers must be there. */
export async function connect(test: TestApp, organizationId: string, phoneNumberId = newPhoneNumberId(), fields = {}) {
  knowNumber(test, phoneNumberId, fields)
  return ask(test.app, connectAccount, {
    organization_id: organizationId,
    phone_number_id: phoneNumberId,
    access_token: 'EAAtoken',
    business_account_id: '900900',
  })
}
