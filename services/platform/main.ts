import * as platform from '@app/shared/contracts/platform.ts'
import { keyRing, readEnv } from '@app/shared/environment.ts'
import { startHousekeeping } from '@app/shared/housekeeping.ts'
import { sweepKeys } from '@app/shared/idempotency.ts'
import { redriveEvents } from '@app/shared/redrive.ts'
import { startRelay } from '@app/shared/relay.ts'
import { serve } from '@app/shared/rpc.ts'
import { markReady, startWithDatabase, stopInOrder } from '@app/shared/service.ts'
import { z } from 'zod'
import { connectAccount } from './accounts/connect-account.ts'
import { findAccount } from './accounts/find-account.ts'
import { listAccounts } from './accounts/list-accounts.ts'
import { apiLog, recordApiCalls } from './api-log/record-api-calls.ts'
import type { App } from './app.ts'
import { authenticateKey } from './keys/authenticate-key.ts'
import { createKey } from './keys/create-key.ts'
import { listKeys } from './keys/list-keys.ts'
import { revokeKey } from './keys/revoke-key.ts'
import { createOrganization } from './organizations/create-organization.ts'
import { getMe } from './organizations/get-me.ts'
import { rateTiers } from './organizations/rate-tiers.ts'
import { updateOrganization } from './organizations/update-organization.ts'
import { createMember } from './teams/create-member.ts'
import { createTeam } from './teams/create-team.ts'
import { listTeams } from './teams/list-teams.ts'
import { createUpstream, upstreamSettings } from '@app/shared/upstream.ts'

const env = readEnv({
  DATABASE_URL: z.url(),
  SEAL_KEYS: keyRing,
  RATE_TIERS: rateTiers,
  ...upstreamSettings,
})
const service = await startWithDatabase('platform', env)
const app: App = {
  ...service,
  relay: startRelay(service),
  sealKeys: env.SEAL_KEYS,
  rateTiers: env.RATE_TIERS,
  upstream: createUpstream(env),
}
const housekeeping = await startHousekeeping(app, { partitions: [apiLog], sweeps: [sweepKeys] })

const serving = await serve(app, platform, {
  getMe,
  listAccounts,
  authenticateKey,
  findAccount,
  recordApiCalls,
  createOrganization,
  updateOrganization,
  createTeam,
  listTeams,
  createMember,
  createKey,
  listKeys,
  revokeKey,
  connectAccount,
  redriveEvents,
})

stopInOrder(app, [
  serving.stop,
  housekeeping.stop,
  app.relay.stop,
  () => app.upstream.agent.close(),
  () => app.nc.drain(),
  () => app.sql.end(),
  app.probes.close,
])
markReady(app)
