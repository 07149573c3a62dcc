import { changesInTurn } from '@app/shared/bus/changes-in-turn.ts'
import * as contacts from '@app/shared/contracts/contacts.ts'
import * as conversations from '@app/shared/contracts/conversations.ts'
import * as directory from '@app/shared/contracts/directory.ts'
import * as changes from '@app/shared/contracts/directory-changes.ts'
import { explains } from '@app/shared/contracts/explain.ts'
import * as labels from '@app/shared/contracts/labels.ts'
import { databaseUrl } from '@app/shared/database/database.ts'
import { keyRing, readEnv } from '@app/shared/service/environment.ts'
import { startHousekeeping } from '@app/shared/database/housekeeping.ts'
import { startTelling } from '@app/shared/bus/notices.ts'
import { explainIdempotencyKey } from '@app/shared/idempotency/explain-idempotency-key.ts'
import { explainRecordedEvent } from '@app/shared/events/explain-recorded-event.ts'
import { auditEvents } from '@app/shared/events/audit.ts'
import { noteFloors } from '@app/shared/events/handled-floors.ts'
import { handledRanges } from '@app/shared/events/handled-ranges.ts'
import { redriveEvents } from '@app/shared/events/redrive.ts'
import { startRelay } from '@app/shared/events/relay.ts'
import { serve } from '@app/shared/bus/rpc.ts'
import { markReady, startWithDatabase } from '@app/shared/service/start.ts'
import { drainBus, stopInOrder } from '@app/shared/service/stop.ts'
import { consumeAccounts } from './accounts/consume-accounts.ts'
import { putAccount } from './accounts/put-account.ts'
import { type App, createApp } from './app.ts'
import { sweepWords } from './contacts/address-book-words.ts'
import { changeIdentity } from './contacts/change-identity.ts'
import { sweepIdentityChanges } from './contacts/identity-changes.ts'
import { consumeMarketingStops } from './contacts/consume-marketing-stops.ts'
import { attachContactLabel } from './contacts/attach-contact-label.ts'
import { bulkLabelContacts } from './contacts/bulk-label-contacts.ts'
import { createContact } from './contacts/create-contact.ts'
import { deleteContact } from './contacts/delete-contact.ts'
import { detachContactLabel } from './contacts/detach-contact-label.ts'
import { getContact } from './contacts/get-contact.ts'
import { importContacts } from './contacts/import-contacts.ts'
import { listContacts } from './contacts/list-contacts.ts'
import { consumeReads, noteRead } from './conversations/note-read.ts'
import { recordPreferences } from './contacts/record-preferences.ts'
import { updateContact } from './contacts/update-contact.ts'
import { attachConversationLabel } from './conversations/attach-conversation-label.ts'
import { detachConversationLabel } from './conversations/detach-conversation-label.ts'
import { consumeSentMessages } from './conversations/note-sent-messages.ts'
import { getConversation } from './conversations/get-conversation.ts'
import { importThreads } from './conversations/import-threads.ts'
import { sweepInbounds } from './conversations/insert-inbounds.ts'
import { listConversations } from './conversations/list-conversations.ts'
import { openConversation } from './conversations/open-conversation.ts'
import { recordInbound } from './conversations/record-inbound.ts'
import { updateConversation } from './conversations/update-conversation.ts'
import { explainContact } from './explain/explain-contact.ts'
import { explainConversation } from './explain/explain-conversation.ts'
import { explainLabel } from './explain/explain-label.ts'
import { createLabel } from './labels/create-label.ts'
import { deleteLabel } from './labels/delete-label.ts'
import { startDetaching } from './labels/detach-deleted-labels.ts'
import { getLabel } from './labels/get-label.ts'
import { listLabels } from './labels/list-labels.ts'
import { updateLabel } from './labels/update-label.ts'
import { consumeMembers, consumeTeams } from './teams/consume-teams.ts'

const env = readEnv({ DATABASE_URL: databaseUrl, CURSOR_KEYS: keyRing })
const service = await startWithDatabase('directory', env)
const housekeeping = await startHousekeeping(service, {
  partitions: [],
  sweeps: [sweepInbounds, sweepIdentityChanges, sweepWords],
  minutely: [auditEvents(service), noteFloors(service)],
})
// As in messaging: nothing is waited for until `stopInOrder`.
const relay = startRelay(service)
const detaching = startDetaching(service, relay)
const telling = startTelling(service, directory.partiesChanged)
const tellChanged = (ids: string[]) => telling.tell({ ids })
const app = createApp(service, { relay, detaching, cursorKeys: env.CURSOR_KEYS, tellChanged })

const accounts = consumeAccounts(app)
const teams = consumeTeams(app)
const members = consumeMembers(app)
const sentMessages = consumeSentMessages(app)
const reads = consumeReads(app)
const marketingStops = consumeMarketingStops(app)
const contracts = { ...directory, ...contacts, ...conversations, ...labels, ...changes, ...explains.directory }
const handlers = changesInTurn<App, typeof contracts>(contracts, {
  listContacts,
  createContact,
  getContact,
  updateContact,
  deleteContact,
  attachContactLabel,
  detachContactLabel,
  bulkLabelContacts,
  listConversations,
  getConversation,
  updateConversation,
  attachConversationLabel,
  detachConversationLabel,
  listLabels,
  createLabel,
  getLabel,
  updateLabel,
  deleteLabel,
  openConversation,
  recordInbound,
  noteRead,
  recordPreferences,
  changeIdentity,
  importContacts,
  importThreads,
  putAccount,
  explainContact,
  explainConversation,
  explainLabel,
  explainIdempotencyKey,
  explainRecordedEvent,
  handledRanges,
  redriveEvents,
})
const serving = serve(app, contracts, handlers)

stopInOrder(app, [
  async () => (await serving).stop(),
  accounts.stop,
  teams.stop,
  members.stop,
  sentMessages.stop,
  reads.stop,
  marketingStops.stop,
  detaching.stop,
  housekeeping.stop,
  relay.stop,
  telling.stop,
  () => drainBus(app),
  () => app.sql.end(),
  app.probes.close,
])
await serving
await markReady(app)
