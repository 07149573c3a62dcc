import { randomBytes } from 'node:crypto'
import type { Rpc } from '@app/shared/api/contract.ts'
import { call, type CallInput, systemCaller } from '@app/shared/bus/ask.ts'
import { connectBus } from '@app/shared/bus/bus.ts'
import { serve } from '@app/shared/bus/rpc.ts'
import * as changes from '@app/shared/contracts/directory-changes.ts'
import * as directory from '@app/shared/contracts/directory.ts'
import type { Relay } from '@app/shared/events/relay.ts'
import { newId } from '@app/shared/values/ids.ts'
import { startBusStepProxy } from '@app/test/bus-step-proxy.ts'
import { loseEach, losses, type LossyFlow } from '@app/test/each-loss.ts'
import { insist } from '@app/test/each-step.ts'
import { amount } from '@app/test/fuzz/seed.ts'
import { busSteppedService } from '@app/test/service.ts'
import { expect, test } from 'vitest'
import { type App, createApp } from './app.ts'
import { changeIdentity } from './contacts/change-identity.ts'
import { importContacts } from './contacts/import-contacts.ts'
import { recordPreferences } from './contacts/record-preferences.ts'
import { importThreads } from './conversations/import-threads.ts'
import { noteRead } from './conversations/note-read.ts'
import { openConversation } from './conversations/open-conversation.ts'
import { recordInbound } from './conversations/record-inbound.ts'
import { eventsOf, newInbound, newNumber } from './testing/app.ts'

const relay: Relay = { wake() {}, redrive: () => Promise.resolve(0), stop: () => Promise.resolve() }
const { openConversation: open, recordInbound: record, noteRead: note } = directory
const contracts = { open, record, note, ...changes }
const handlers = {
  open: openConversation,
  record: recordInbound,
  note: noteRead,
  recordPreferences,
  changeIdentity,
  importContacts,
  importThreads,
}

/** What may not be asked again by itself is asked again by who works through callbacks, whom nobody keeps waiting here for long. */
const briefly = { timeoutMs: 1_500 }

/** The directory as a service, and who asks it as messaging does; one of them loses messages. */
async function asking(whose: 'asker' | 'service'): Promise<LossyFlow> {
  const service = await busSteppedService('directory')
  const askerSteps = await startBusStepProxy(service.natsUrl)
  const asker = await connectBus('messaging', askerSteps.url, service.log)
  const cursorKeys = { current: 'k', byId: new Map([['k', randomBytes(32)]]) }
  const detaching = { wake() {}, stop: () => Promise.resolve() }
  const app = createApp(service, { relay, detaching, cursorKeys, tellChanged() {} })
  const serving = await serve(app, contracts, handlers)
  await service.nc.flush()
  const ends: unknown[] = []
  return {
    steps: whose === 'asker' ? askerSteps : service.busSteps,
    isBack: () => service.isConnected() && service.eventBus.isConnected() && asker.isConnected(),
    async run() {
      const number = await newNumber(app)
      await tellAll({ ...asker, tracer: undefined }, number)
      ends.push(await endOf(app, number.organizationId))
      expect(ends.at(-1)).toEqual(ends[0])
    },
    async close() {
      await serving.stop()
      await asker.nc.close()
      askerSteps.close()
      await service.close()
    },
  }
}

/** All that messaging asks of the directory, about one person. */
async function tellAll(asker: Parameters<typeof call>[0], { organizationId, phoneNumberId }: Named) {
  const [phone_number, wa_id, at] = ['+15550123456', '15550123456', '2026-03-01T12:00:00.000Z']
  const params = { phone_number_id: phoneNumberId }
  const asked = <C extends Rpc>(contract: C, input: CallInput<C>, options?: typeof briefly) =>
    insist(() => call(asker, contract, input, systemCaller(organizationId), options))
  const body = { recipient: { phone_number }, window: 'any', marketing: false } as const
  const { conversation } = await asked(open, { params, body })
  const inbound = { ...newInbound(), wa_id, bsuid: 'US.1', profile_name: 'Ana' }
  expect((await asked(record, { params, body: inbound }, briefly)).conversation.id).toBe(conversation.id)
  await asked(record, { params, body: { ...newInbound(), wa_id } }, briefly)
  await asked(note, { body: { event_id: newId('evt'), conversation_id: conversation.id, read: 1 } }, briefly)
  const preferences = [{ wa_id, bsuid: null, value: 'stop' as const, at }]
  await asked(changes.recordPreferences, { params, body: { preferences } }, briefly)
  const contacts = [{ wa_id: '15550123457', name: 'Bo', action: 'add' as const, at }]
  await asked(changes.importContacts, { params, body: { contacts } }, briefly)
  const threads = [{ wa_id: '15550123458', bsuid: null, last_message_at: at }]
  await asked(changes.importThreads, { params, body: { threads } }, briefly)
  const current = { wa_id: '15550123459', bsuid: 'US.2', parent_bsuid: null }
  const change = { id: 'wamid.1', previous: { wa_id, bsuid: 'US.1' }, current, at }
  await asked(changes.changeIdentity, { params, body: change }, briefly)
}

interface Named {
  organizationId: string
  phoneNumberId: string
}

/** What is there in the end, without what differs from run to run. */
async function endOf({ sql }: App, organizationId: string) {
  const contacts = await sql`
    select phone_number, wa_id, bsuid, name, marketing_preference from contacts
    where organization_id = ${organizationId} order by phone_number, wa_id, id
  `
  const conversations = await sql`
    select status, unread_count from conversations where organization_id = ${organizationId} order by unread_count, id
  `
  const events = await eventsOf({ sql }, organizationId)
  return { contacts: [...contacts], conversations: [...conversations], events: events.map(({ type }) => type) }
}

const timeoutMs = amount(60_000, 900_000)

test.concurrent.each(['asker', 'service'] as const)(
  'each message lost once: what messaging asks the directory is done once and answered, if the %s loses it',
  { timeout: timeoutMs },
  async (whose) => {
    await Promise.all(losses.map(async (loss) => loseEach(loss, await asking(whose), 1)))
  },
)
