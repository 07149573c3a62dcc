import { createInTurn } from '@app/shared/bus/in-turn.ts'
import * as customers from '@app/shared/contracts/customers.ts'
import { explains } from '@app/shared/contracts/explain.ts'
import * as platform from '@app/shared/contracts/platform.ts'
import * as onboarding from '@app/shared/contracts/onboarding.ts'
import { databaseUrl } from '@app/shared/database/database.ts'
import { publicUrl, keyRing, readEnv, sealKeyRing } from '@app/shared/service/environment.ts'
import { startHousekeeping } from '@app/shared/database/housekeeping.ts'
import { explainIdempotencyKey } from '@app/shared/idempotency/explain-idempotency-key.ts'
import { sealedAnswers } from '@app/shared/idempotency/idempotency.ts'
import { explainRecordedEvent } from '@app/shared/events/explain-recorded-event.ts'
import { auditEvents } from '@app/shared/events/audit.ts'
import { noteFloors } from '@app/shared/events/handled-floors.ts'
import { handledRanges } from '@app/shared/events/handled-ranges.ts'
import { redriveEvents } from '@app/shared/events/redrive.ts'
import { startRelay } from '@app/shared/events/relay.ts'
import { serve } from '@app/shared/bus/rpc.ts'
import { watchSecrets } from '@app/shared/secrets/sealed-secrets.ts'
import { markReady, startWithDatabase } from '@app/shared/service/start.ts'
import { drainBus, stopInOrder } from '@app/shared/service/stop.ts'
import { z } from 'zod'
import { sealedTokens } from './accounts/accounts.ts'
import { connectAccount } from './accounts/connect-account.ts'
import { disconnectAccount } from './accounts/disconnect-account.ts'
import { findAccount } from './accounts/find-account.ts'
import { findAccounts } from './accounts/find-accounts.ts'
import { listAccounts } from './accounts/list-accounts.ts'
import { recordApiCalls, recordCallBatch } from './api-log/earlier-gateways.ts'
import { apiLog } from './api-log/earlier-rows.ts'
import { apiCalls, recordCalls, sweepBatches } from './api-log/record-calls.ts'
import type { App } from './app.ts'
import { archiveCustomer } from './customers/archive-customer.ts'
import { createCustomer } from './customers/create-customer.ts'
import { getCustomer } from './customers/get-customer.ts'
import { listCustomers } from './customers/list-customers.ts'
import { removeCustomerAccount } from './customers/remove-customer-account.ts'
import { restoreCustomer } from './customers/restore-customer.ts'
import { updateCustomer } from './customers/update-customer.ts'
import { explainAccounts } from './explain/explain-accounts.ts'
import { explainCustomer } from './explain/explain-customer.ts'
import { explainKey } from './explain/explain-key.ts'
import { explainOrganization } from './explain/explain-organization.ts'
import { explainRequest } from './explain/explain-request.ts'
import { explainSetupLink } from './explain/explain-setup-link.ts'
import { createChangesInLine } from './health/changes-in-line.ts'
import { consumeAccountReports } from './health/account-reports.ts'
import { startPolling } from './health/poll-accounts.ts'
import { authenticateKey } from './keys/authenticate-key.ts'
import { createKey } from './keys/create-key.ts'
import { listKeys } from './keys/list-keys.ts'
import { revokeKey } from './keys/revoke-key.ts'
import { beginSetup } from './onboarding/begin-setup.ts'
import { completeSetup } from './onboarding/complete-setup.ts'
import { getSetup } from './onboarding/get-setup.ts'
import { sealedCodes, sweepOnboardings } from './onboarding/onboardings.ts'
import { startResuming } from './onboarding/resume-onboardings.ts'
import { createOrganization } from './organizations/create-organization.ts'
import { getMe } from './organizations/get-me.ts'
import { listOrganizations } from './organizations/list-organizations.ts'
import { rateTiers } from './organizations/rate-tiers.ts'
import { updateOrganization } from './organizations/update-organization.ts'
import { registerNumber } from './registration/register-number.ts'
import { createSetupLink } from './setup-links/create-setup-link.ts'
import { listSetupLinks } from './setup-links/list-setup-links.ts'
import { revokeSetupLink } from './setup-links/revoke-setup-link.ts'
import { updateSetupLink } from './setup-links/update-setup-link.ts'
import { createMember } from './teams/create-member.ts'
import { createTeam } from './teams/create-team.ts'
import { listTeams } from './teams/list-teams.ts'
import { createUpstream, upstreamSettings } from '@app/shared/outside/upstream.ts'

const env = readEnv({
  DATABASE_URL: databaseUrl,
  CURSOR_KEYS: keyRing,
  SEAL_KEYS: sealKeyRing,
  RATE_TIERS: rateTiers,
  PUBLIC_URL: publicUrl,
  ...upstreamSettings,
  UPSTREAM_APP_SECRET: z.string().min(1),
})
const service = await startWithDatabase('platform', env)
const app: App = {
  ...service,
  relay: startRelay(service),
  inTurn: createInTurn(),
  searchInTurn: createInTurn('searches', 1),
  listInTurn: createInTurn('lists of numbers', 1),
  readInTurn: createInTurn('reads'),
  changeInLine: createChangesInLine(),
  cursorKeys: env.CURSOR_KEYS,
  sealKeys: env.SEAL_KEYS,
  rateTiers: env.RATE_TIERS,
  upstream: createUpstream(env),
  upstreamAppSecret: env.UPSTREAM_APP_SECRET,
  publicUrl: env.PUBLIC_URL,
}
const housekeeping = await startHousekeeping(app, {
  partitions: [apiCalls, apiLog],
  sweeps: [sweepOnboardings, sweepBatches],
  minutely: [auditEvents(service), noteFloors(service)],
})
// As in messaging: nothing is waited for until `stopInOrder`, and all that takes work in stops together.
const polling = startPolling(app)
const resuming = startResuming(app)
const reports = consumeAccountReports(app, polling)

const contracts = { ...platform, ...customers, ...onboarding, ...explains.platform }
const serving = serve(app, contracts, {
  getMe,
  listAccounts,
  authenticateKey,
  findAccount,
  findAccounts,
  recordApiCalls,
  recordCallBatch,
  recordCalls,
  createOrganization,
  updateOrganization,
  listOrganizations,
  createTeam,
  listTeams,
  createMember,
  createKey,
  listKeys,
  revokeKey,
  connectAccount,
  disconnectAccount,
  createCustomer,
  listCustomers,
  getCustomer,
  updateCustomer,
  archiveCustomer,
  restoreCustomer,
  removeCustomerAccount,
  removeCustomerWhatsappAccount: removeCustomerAccount,
  createSetupLink,
  listSetupLinks,
  updateSetupLink,
  revokeSetupLink,
  registerNumber,
  getSetup,
  beginSetup,
  completeSetup,
  explainRequest,
  explainAccounts,
  explainCustomer,
  explainSetupLink,
  explainIdempotencyKey,
  explainKey,
  explainOrganization,
  explainRecordedEvent,
  handledRanges,
  redriveEvents,
  ...watchSecrets(app, [sealedTokens, sealedCodes, sealedAnswers]),
})

stopInOrder(app, [
  [async () => (await serving).stop(), reports.stop, polling.stop, resuming.stop, housekeeping.stop],
  app.relay.stop,
  app.upstream.close,
  () => drainBus(app),
  () => app.sql.end(),
  app.probes.close,
])
await serving
await markReady(app)
