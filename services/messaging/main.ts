import { consume } from '@app/shared/consume.ts'
import * as contracts from '@app/shared/contracts/messaging.ts'
import * as templateContracts from '@app/shared/contracts/templates.ts'
import { accountChanged } from '@app/shared/contracts/platform.ts'
import { createEgress } from '@app/shared/egress.ts'
import { keyRing, readEnv } from '@app/shared/environment.ts'
import { startHousekeeping } from '@app/shared/housekeeping.ts'
import { consumers } from '@app/shared/provision.ts'
import { redriveEvents } from '@app/shared/redrive.ts'
import { startRelay } from '@app/shared/relay.ts'
import { serve } from '@app/shared/rpc.ts'
import { markReady, startWithDatabase, stopInOrder } from '@app/shared/service.ts'
import { createUpstream, upstreamSettings } from '@app/shared/upstream.ts'
import { z } from 'zod'
import type { App, Core } from './app.ts'
import { acceptCallback, acceptCallbacks } from './callbacks/accept-callback.ts'
import { startCallbacks } from './callbacks/process-callbacks.ts'
import { getMessage } from './messages/get-message.ts'
import { listMessages } from './messages/list-messages.ts'
import { acceptSends } from './sends/accept-send.ts'
import { startDispatcher } from './sends/dispatch.ts'
import { createRefusalOf } from './senders/refusal-of.ts'
import { createKnownConversations } from './sends/known-conversations.ts'
import { sendMessage } from './sends/send-message.ts'
import { putSender, storeSender } from './senders/put-sender.ts'
import { createTemplate } from './templates/create-template.ts'
import { editTemplate } from './templates/edit-template.ts'
import { getTemplate } from './templates/get-template.ts'
import { createKnownTemplates } from './templates/known-templates.ts'
import { listTemplates } from './templates/list-templates.ts'
import { syncTemplates } from './templates/sync-templates.ts'

const env = readEnv({
  DATABASE_URL: z.string().min(1),
  SEAL_KEYS: keyRing,
  CURSOR_KEYS: keyRing,
  ...upstreamSettings,
  /** Networks that media may be fetched from although they are not public. */
  EGRESS_ALLOW_CIDRS: z.string().default(''),
  EGRESS_PROXY_URL: z.url().optional(),
})
const service = await startWithDatabase('messaging', env)
const relay = startRelay(service)
const core: Core = {
  ...service,
  relay,
  sealKeys: env.SEAL_KEYS,
  cursorKeys: env.CURSOR_KEYS,
  upstream: createUpstream(env),
  egress: createEgress({ allowCidrs: env.EGRESS_ALLOW_CIDRS, proxyUrl: env.EGRESS_PROXY_URL }),
  known: createKnownConversations(),
  templates: createKnownTemplates(service.sql),
}
const dispatcher = startDispatcher(core)
const callbacks = startCallbacks(core, dispatcher.wake)
const app: App = {
  ...core,
  acceptSend: acceptSends(core.sql),
  refusalOf: createRefusalOf(core.sql),
  acceptCallback: acceptCallbacks(core.sql),
  dispatcher,
  callbacks,
}
const housekeeping = await startHousekeeping(app, {
  partitions: [{ table: 'callbacks', by: 'time', keepDays: 7 }],
})

const accounts = consume(app, consumers.messagingAccounts.name, accountChanged, storeSender)
const serving = await serve(
  app,
  { ...contracts, ...templateContracts },
  {
    sendMessage,
    getMessage,
    listMessages,
    acceptCallback,
    putSender,
    redriveEvents,
    listTemplates,
    getTemplate,
    createTemplate,
    editTemplate,
    syncTemplates,
  },
)
markReady(app)

stopInOrder(app, [
  serving.stop,
  accounts.stop,
  () => Promise.all([dispatcher.stop(), callbacks.stop()]),
  housekeeping.stop,
  relay.stop,
  () => app.nc.drain(),
  () => app.sql.end({ timeout: 5 }),
  () => app.upstream.agent.close(),
  app.egress.close,
  app.probes.close,
])
