import { changesInTurn } from '@app/shared/bus/changes-in-turn.ts'
import * as deliveries from '@app/shared/contracts/webhook-deliveries.ts'
import * as replays from '@app/shared/contracts/webhook-replays.ts'
import { explains } from '@app/shared/contracts/explain.ts'
import * as webhooks from '@app/shared/contracts/webhooks.ts'
import { createEgress, egressSettings } from '@app/shared/outside/egress.ts'
import { databaseUrl } from '@app/shared/database/database.ts'
import { keyRing, readEnv, sealKeyRing } from '@app/shared/service/environment.ts'
import { startHousekeeping } from '@app/shared/database/housekeeping.ts'
import { sealedAnswers } from '@app/shared/idempotency/idempotency.ts'
import { startRelay } from '@app/shared/events/relay.ts'
import { explainIdempotencyKey } from '@app/shared/idempotency/explain-idempotency-key.ts'
import { explainRecordedEvent } from '@app/shared/events/explain-recorded-event.ts'
import { auditEvents } from '@app/shared/events/audit.ts'
import { noteFloors } from '@app/shared/events/handled-floors.ts'
import { handledRanges } from '@app/shared/events/handled-ranges.ts'
import { redriveEvents } from '@app/shared/events/redrive.ts'
import { serve } from '@app/shared/bus/rpc.ts'
import { watchSecrets } from '@app/shared/secrets/sealed-secrets.ts'
import { markReady, startWithDatabase } from '@app/shared/service/start.ts'
import { drainBus, stopInOrder } from '@app/shared/service/stop.ts'
import { type App, type Core, createQueryTurns } from './app.ts'
import { startAttempts } from './attempts/attempts.ts'
import { createExpirySweep, createOverflowSweep } from './attempts/give-up.ts'
import { createPayloads } from './attempts/payloads.ts'
import { getWebhookDelivery } from './deliveries/get-webhook-delivery.ts'
import { listWebhookDeliveries } from './deliveries/list-webhook-deliveries.ts'
import { partitions, sweepDead, sweepLanes, sweepReplays } from './deliveries/retention.ts'
import { explainDelivery, explainEvents } from './explain/explain-deliveries.ts'
import { explainOrganizationDeliveries } from './explain/explain-organization-deliveries.ts'
import { explainReplay } from './explain/explain-replay.ts'
import { explainSubscription } from './explain/explain-subscription.ts'
import { startFanOut } from './fan-out/fan-out.ts'
import { createMeters, readStanding } from './metrics.ts'
import { replayWebhookDelivery } from './deliveries/replay-webhook-delivery.ts'
import { cancelWebhookReplay } from './replays/cancel-webhook-replay.ts'
import { createWebhookReplay } from './replays/create-webhook-replay.ts'
import { startReplays } from './replays/enqueue-replays.ts'
import { getWebhookReplay } from './replays/get-webhook-replay.ts'
import { listWebhookReplays } from './replays/list-webhook-replays.ts'
import { createWebhookSecret } from './subscriptions/create-webhook-secret.ts'
import { deleteWebhookSecret } from './subscriptions/delete-webhook-secret.ts'
import { disableWebhookSubscription, sweepFailing } from './subscriptions/disable-webhook-subscription.ts'
import { sweepWaits } from './subscriptions/end-waits.ts'
import { enableWebhookSubscription } from './subscriptions/enable-webhook-subscription.ts'
import { sealedSecrets, sweepSecrets } from './subscriptions/secrets.ts'
import { testWebhookSubscription } from './subscriptions/test-webhook-subscription.ts'
import { updateWebhookSubscription } from './subscriptions/update-webhook-subscription.ts'
import { createWebhookSubscription } from './subscriptions/create-webhook-subscription.ts'
import { deleteWebhookSubscription } from './subscriptions/delete-webhook-subscription.ts'
import { getWebhookSubscription } from './subscriptions/get-webhook-subscription.ts'
import { listWebhookSubscriptions } from './subscriptions/list-webhook-subscriptions.ts'

const env = readEnv({
  DATABASE_URL: databaseUrl,
  CURSOR_KEYS: keyRing,
  SEAL_KEYS: sealKeyRing,
  ...egressSettings,
})
const egress = createEgress({ allowCidrs: env.EGRESS_ALLOW_CIDRS, proxyUrl: env.EGRESS_PROXY_URL })
const service = await startWithDatabase('webhooks', env)
const core: Core = {
  ...service,
  relay: startRelay(service),
  cursorKeys: env.CURSOR_KEYS,
  sealKeys: env.SEAL_KEYS,
  egress,
  payloads: createPayloads(),
  meters: createMeters(service),
}
readStanding(service)
const housekeeping = await startHousekeeping(core, {
  partitions,
  sweeps: [createExpirySweep(core), sweepDead, sweepLanes, sweepReplays, sweepSecrets],
  minutely: [createOverflowSweep(core), sweepFailing, sweepWaits, auditEvents(service), noteFloors(service)],
})
// As in messaging: nothing is waited for until `stopInOrder`, and all that takes work in stops together.
const attempts = startAttempts(core)
const app: App = {
  ...core,
  attempts,
  replays: startReplays(core, attempts.wake),
  ...createQueryTurns(),
}
const fanOut = startFanOut(app)
const contracts = { ...webhooks, ...deliveries, ...replays, ...explains.webhooks }
const handlers = changesInTurn<App, typeof contracts>(contracts, {
  explainEvents,
  explainDelivery,
  explainSubscription,
  explainReplay,
  explainOrganizationDeliveries,
  createWebhookSubscription,
  listWebhookSubscriptions,
  getWebhookSubscription,
  updateWebhookSubscription,
  enableWebhookSubscription,
  disableWebhookSubscription,
  deleteWebhookSubscription,
  testWebhookSubscription,
  createWebhookSecret,
  deleteWebhookSecret,
  listWebhookDeliveries,
  getWebhookDelivery,
  replayWebhookDelivery,
  createWebhookReplay,
  listWebhookReplays,
  getWebhookReplay,
  cancelWebhookReplay,
  explainIdempotencyKey,
  explainRecordedEvent,
  handledRanges,
  redriveEvents,
  ...watchSecrets(app, [sealedSecrets, sealedAnswers]),
})
const serving = serve(app, contracts, handlers)

stopInOrder(app, [
  [async () => (await serving).stop(), fanOut.stop, app.replays.stop, app.attempts.stop, housekeeping.stop],
  app.relay.stop,
  () => drainBus(app),
  () => app.sql.end({ timeout: 5 }),
  app.egress.close,
  app.probes.close,
])
await serving
await markReady(app)
