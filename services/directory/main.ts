import * as directory from '@app/shared/contracts/directory.ts'
import * as changes from '@app/shared/contracts/directory-changes.ts'
import { keyRing, readEnv } from '@app/shared/environment.ts'
import { startHousekeeping } from '@app/shared/housekeeping.ts'
import { redriveEvents } from '@app/shared/redrive.ts'
import { startRelay } from '@app/shared/relay.ts'
import { serve } from '@app/shared/rpc.ts'
import { markReady, startWithDatabase, stopInOrder } from '@app/shared/service.ts'
import { z } from 'zod'
import { consumeAccounts } from './accounts/consume-accounts.ts'
import { putAccount } from './accounts/put-account.ts'
import { createApp } from './app.ts'
import { changeIdentity, sweepIdentityChanges } from './contacts/change-identity.ts'
import { consumeMarketingStops } from './contacts/consume-marketing-stops.ts'
import { getContact } from './contacts/get-contact.ts'
import { importContacts } from './contacts/import-contacts.ts'
import { listContacts } from './contacts/list-contacts.ts'
import { consumeReads, noteRead } from './conversations/note-read.ts'
import { recordPreferences } from './contacts/record-preferences.ts'
import { consumeSentMessages } from './conversations/note-sent-messages.ts'
import { getConversation } from './conversations/get-conversation.ts'
import { importThreads } from './conversations/import-threads.ts'
import { sweepInbounds } from './conversations/insert-inbounds.ts'
import { listConversations } from './conversations/list-conversations.ts'
import { openConversation } from './conversations/open-conversation.ts'
import { recordInbound } from './conversations/record-inbound.ts'

const env = readEnv({ DATABASE_URL: z.string().min(1), CURSOR_KEYS: keyRing })
const service = await startWithDatabase('directory', env)
const housekeeping = await startHousekeeping(service, { partitions: [], sweeps: [sweepInbounds, sweepIdentityChanges] })
const relay = startRelay(service)
const app = createApp(service, relay, env.CURSOR_KEYS)

const accounts = consumeAccounts(app)
const sentMessages = consumeSentMessages(app)
const reads = consumeReads(app)
const marketingStops = consumeMarketingStops(app)
const serving = await serve(
  app,
  { ...directory, ...changes },
  {
    listContacts,
    getContact,
    listConversations,
    getConversation,
    openConversation,
    recordInbound,
    noteRead,
    putAccount,
    redriveEvents,
    recordPreferences,
    changeIdentity,
    importContacts,
    importThreads,
  },
)

stopInOrder(app, [
  serving.stop,
  accounts.stop,
  sentMessages.stop,
  reads.stop,
  marketingStops.stop,
  housekeeping.stop,
  relay.stop,
  () => app.nc.drain(),
  () => app.sql.end(),
  app.probes.close,
])
markReady(app)
