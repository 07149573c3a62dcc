import { consume } from '@app/shared/events/consume.ts'
import { explains } from '@app/shared/contracts/explain.ts'
import * as mediaContracts from '@app/shared/contracts/media.ts'
import * as contracts from '@app/shared/contracts/messaging.ts'
import * as templateContracts from '@app/shared/contracts/templates.ts'
import * as changes from '@app/shared/contracts/messaging-changes.ts'
import { partiesChanged } from '@app/shared/contracts/directory.ts'
import { accountChanged } from '@app/shared/contracts/platform.ts'
import { databaseUrl } from '@app/shared/database/database.ts'
import { ownSession } from '@app/shared/database/own-session.ts'
import { keyRing, readEnv, sealKeyRing } from '@app/shared/service/environment.ts'
import { storeFault } from '@app/shared/store/store.ts'
import { startHousekeeping } from '@app/shared/database/housekeeping.ts'
import { hear } from '@app/shared/bus/notices.ts'
import { consumers } from '@app/shared/events/provision.ts'
import { explainIdempotencyKey } from '@app/shared/idempotency/explain-idempotency-key.ts'
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
import { createUpstream, upstreamSettings } from '@app/shared/outside/upstream.ts'
import { type App, type Core, createQueryTurns } from './app.ts'
import { acceptCallback, createAcceptCallback } from './callbacks/accept-callback.ts'
import { acceptCallbacks } from './callbacks/accept-callbacks.ts'
import { startCallbacks } from './callbacks/process-callbacks.ts'
import { explainMedia } from './explain/explain-media.ts'
import { explainMessage } from './explain/explain-message.ts'
import { explainOrganizationSends } from './explain/explain-organization-sends.ts'
import { explainQueue } from './explain/explain-queue.ts'
import { explainSenders } from './explain/explain-senders.ts'
import { explainTemplate } from './explain/explain-template.ts'
import { findRequestedMessages } from './explain/find-requested-messages.ts'
import { startCopier } from './media/copy-media.ts'
import { sweepMedia, sweepMediaUploads } from './media/delete-media.ts'
import { findMedia } from './media/find-media.ts'
import { getMessageMedia } from './media/get-message-media.ts'
import { createMediaWays, mediaSettings } from './media/media.ts'
import { openUpload } from './media/open-upload.ts'
import { startLateTelling } from './media/tell-late.ts'
import { startFileSweep } from './media/unclaimed-files.ts'
import { uploadMedia } from './media/upload-media.ts'
import { redriveCallbacks } from './callbacks/redrive-callbacks.ts'
import { sweepCallbackItems } from './callbacks/sweep-items.ts'
import { oldMessagesSweep } from './messages/delete-old-messages.ts'
import { sweepDeletedMessages } from './messages/deleted-messages.ts'
import { createMeters, readStanding } from './metrics.ts'
import { getMessage } from './messages/get-message.ts'
import { listMessages } from './messages/list-messages.ts'
import { acceptSends } from './sends/accept-send.ts'
import { startDispatcher } from './sends/dispatch.ts'
import { createRefusalOf } from './senders/refusal-of.ts'
import { createKnownConversations } from './sends/known-conversations.ts'
import { sendMessage } from './sends/send-message.ts'
import { sweepLetOutLanes } from './sends/sweep-lanes.ts'
import { finishSender, putSender, sealedTokens, storeSender } from './senders/put-sender.ts'
import { createAskInTurn } from './senders/report-account.ts'
import { createTemplate } from './templates/create-template.ts'
import { editTemplate } from './templates/edit-template.ts'
import { getTemplate } from './templates/get-template.ts'
import { createKnownTemplates } from './templates/known-templates.ts'
import { createReadings } from './templates/readings.ts'
import { listTemplates } from './templates/list-templates.ts'
import { syncTemplates } from './templates/sync-templates.ts'

const env = readEnv(
  {
    DATABASE_URL: databaseUrl,
    SEAL_KEYS: sealKeyRing,
    CURSOR_KEYS: keyRing,
    ...upstreamSettings,
    ...mediaSettings,
  },
  storeFault,
)
const service = await startWithDatabase('messaging', env)
const relay = startRelay(service)
const known = createKnownConversations(hear(service, partiesChanged, ({ ids }) => known.doubt(ids)))
const core: Core = {
  ...service,
  relay,
  sealKeys: env.SEAL_KEYS,
  cursorKeys: env.CURSOR_KEYS,
  upstream: createUpstream(env),
  askInTurn: createAskInTurn(),
  known,
  templates: createKnownTemplates(service.sql),
  readings: createReadings(),
  media: createMediaWays(env),
  meters: createMeters(service),
}
readStanding(service)
const stopping = new AbortController()
const housekeeping = await startHousekeeping(core, {
  partitions: [{ table: 'callbacks', by: 'time', keepDays: 7 }],
  sweeps: [
    sweepMedia,
    sweepMediaUploads,
    sweepLetOutLanes,
    sweepCallbackItems,
    sweepDeletedMessages,
    oldMessagesSweep(stopping.signal),
  ],
  minutely: [auditEvents(service), noteFloors(service)],
})
// Left to itself, Postgres plans the statement that records each batch of sends again and again, as tables grow. To plan it takes longer
// than to run it.
const settling = ownSession(core.sql, { plan_cache_mode: 'force_generic_plan' })
// From here to `stopInOrder` nothing is waited for: a signal in between would cut off the calls that have begun.
const dispatcher = startDispatcher(core, settling)
const copier = startCopier(core)
const lateTelling = startLateTelling(core)
const fileSweep = startFileSweep(core)
const callbacks = startCallbacks(core, () => {
  dispatcher.wake()
  copier.wake()
})
const app: App = {
  ...core,
  acceptSend: acceptSends(core, dispatcher),
  refusalOf: createRefusalOf(core.sql),
  acceptCallback: createAcceptCallback(core.sql),
  ...createQueryTurns(),
  dispatcher,
  callbacks,
  copier,
}
const accounts = consume(app, consumers.messagingAccounts.name, accountChanged, async (tx, account) => {
  const moved = await storeSender(tx, app.sealKeys, account)
  // With very many sends it takes a while: the events of other organizations do not wait for that.
  return async () => void finishSender(app, account, moved)
})
const serving = serve(
  app,
  { ...contracts, ...changes, ...templateContracts, ...mediaContracts, ...explains.messaging },
  {
    sendMessage,
    getMessage,
    listMessages,
    acceptCallbacks,
    acceptCallback,
    putSender,
    explainMessage,
    findRequestedMessages,
    explainQueue,
    explainSenders,
    explainTemplate,
    explainMedia,
    explainOrganizationSends,
    explainIdempotencyKey,
    explainRecordedEvent,
    handledRanges,
    redriveEvents,
    ...watchSecrets(app, [sealedTokens]),
    listTemplates,
    getTemplate,
    createTemplate,
    editTemplate,
    syncTemplates,
    uploadMedia,
    openUpload,
    getMessageMedia,
    findMedia,
    redriveCallbacks,
  },
)

stopInOrder(app, [
  // All that takes work in stops together: if one waited for its answers first, the others would go on beginning calls, and 24 s might
  // not be enough for them.
  [
    async () => (await serving).stop(),
    accounts.stop,
    () => app.media.stopping.abort(),
    () => stopping.abort(),
    dispatcher.stop,
    callbacks.stop,
    copier.stop,
    lateTelling.stop,
    fileSweep.stop,
    housekeeping.stop,
  ],
  app.readings.stop,
  relay.stop,
  () => drainBus(app),
  () => settling.end({ timeout: 5 }),
  () => app.sql.end({ timeout: 5 }),
  app.upstream.close,
  app.media.close,
  app.probes.close,
])
await serving
await markReady(app)
