import { randomBytes } from 'node:crypto'
import { systemCaller } from '@app/shared/bus/ask.ts'
import * as contactContracts from '@app/shared/contracts/contacts.ts'
import * as conversationContracts from '@app/shared/contracts/conversations.ts'
import * as directoryContracts from '@app/shared/contracts/directory.ts'
import { newId } from '@app/shared/values/ids.ts'
import type { Loop } from '@app/shared/work/loop.ts'
import type { Relay } from '@app/shared/events/relay.ts'
import type { DataService } from '@app/shared/service/service.ts'
import { untilSomebodyWaits } from '@app/test/lock-waits.ts'
import { type Account, newAccountState } from '@app/test/account-state.ts'
import { createTestDatabase } from '@app/test/database.ts'
import { z } from 'zod'
import { putAccount } from '../accounts/put-account.ts'
import { type App, createApp } from '../app.ts'
import { getContact } from '../contacts/get-contact.ts'
import { listContacts } from '../contacts/list-contacts.ts'
import { getConversation } from '../conversations/get-conversation.ts'
import { listConversations } from '../conversations/list-conversations.ts'
import { openConversation } from '../conversations/open-conversation.ts'
import { recordInbound } from '../conversations/record-inbound.ts'

const contracts = { ...directoryContracts, ...contactContracts, ...conversationContracts }

type InboundBody = z.output<(typeof contracts.recordInbound)['body']>
type OpenBody = z.output<(typeof contracts.openConversation)['body']>

/** A directory on a database of its own, without a bus: its handlers are called as functions. */
export async function testDirectory() {
  const database = await createTestDatabase('directory')
  const relay: Relay = { wake() {}, redrive: () => Promise.resolve(0), stop: () => Promise.resolve() }
  const cursorKeys = { current: 'k', byId: new Map([['k', randomBytes(32)]]) }
  const detaching: Loop = { wake() {}, stop: () => Promise.resolve() }
  /** The ids that were told of as changed. */
  const changed: string[] = []
  const tellChanged = (ids: string[]) => void changed.push(...ids)
  /** Another instance of the service: its calls meet those of the others in the database alone, not in a batch. */
  const newInstance = (sql = database.sql) =>
    createApp({ name: 'directory', sql } as DataService, { relay, detaching, cursorKeys, tellChanged })
  return { app: newInstance(), newInstance, changed, ...database }
}

export type TestDirectory = Awaited<ReturnType<typeof testDirectory>>

/** A number that the directory knows of. */
export async function newNumber(app: App, changes: Partial<Account> = {}) {
  const state = newAccountState(changes)
  await putAccount(app, { params: {}, query: {}, body: state }, systemCaller())
  return { state, ...asking(app, state.organization_id, state.phone_number_id) }
}

/** The operations as asked by an organization under a number's path. */
export function asking(app: App, organizationId: string, phoneNumberId: string) {
  const caller = systemCaller(organizationId)
  const params = { phone_number_id: phoneNumberId }
  const query = {}
  return {
    organizationId,
    phoneNumberId,
    open: (recipient: OpenBody['recipient'], { window = 'any', marketing = false }: Partial<OpenBody> = {}) =>
      parsed(
        contracts.openConversation.answer,
        openConversation(app, { params, query, body: { recipient, window, marketing } }, caller),
      ),
    inbound: (body: Partial<InboundBody>) =>
      parsed(
        contracts.recordInbound.answer,
        recordInbound(app, { params, query, body: { ...newInbound(), ...body } }, caller),
      ),
    getContact: (id: string) =>
      parsed(contracts.Contact, getContact(app, { params: { ...params, id }, query, body: undefined }, caller)),
    getConversation: (id: string) =>
      parsed(
        contracts.Conversation,
        getConversation(app, { params: { ...params, id }, query, body: undefined }, caller),
      ),
    listContacts: (asked: z.input<(typeof contracts.listContacts)['query']> = {}) =>
      parsed(pageOf(contracts.Contact), listContacts(app, { params, query: asked, body: undefined }, caller)),
    listConversations: (asked: z.input<(typeof contracts.listConversations)['query']> = {}) =>
      parsed(
        pageOf(contracts.Conversation),
        listConversations(
          app,
          { params, query: contracts.listConversations.query.parse(asked), body: undefined },
          caller,
        ),
      ),
  }
}

/** The same number, asked of as many instances. */
export const everywhere = (
  { newInstance }: TestDirectory,
  { organizationId, phoneNumberId }: { organizationId: string; phoneNumberId: string },
  instances: number,
) => Array.from({ length: instances }, () => asking(newInstance(), organizationId, phoneNumberId))

/** Runs a change that has to wait for a contact, which somebody else has locked, and does something else meanwhile. */
export async function overtaken<R, M>(
  { sql }: TestDirectory,
  contactId: string,
  change: () => Promise<R>,
  meanwhile: () => Promise<M>,
): Promise<[R, M]> {
  let changed: Promise<R> | undefined
  let done: M | undefined
  await sql.begin(async (tx) => {
    await tx`select id from contacts where id = ${contactId} for no key update`
    changed = change()
    await untilSomebodyWaits(sql)
    done = await meanwhile()
  })
  return [(await changed) as R, done as M]
}

/** The events recorded for an organization, in their order. */
export async function eventsOf({ sql }: Pick<App, 'sql'>, organizationId: string) {
  const rows = await sql<{ subject: string; payload: Uint8Array }[]>`
    select subject, payload from outbox where headers ->> 'organization' = ${organizationId} order by seq
  `
  return rows.map(({ subject, payload }) => ({
    subject,
    ...(JSON.parse(Buffer.from(payload).toString()) as { type: string; data: unknown }),
  }))
}

export const newInbound = (): InboundBody => ({
  upstream_id: `wamid.${randomBytes(12).toString('base64url')}`,
  message_id: newId('msg'),
  sent_at: new Date().toISOString(),
  wa_id: null,
  bsuid: null,
  parent_bsuid: null,
  username: null,
  profile_name: null,
  counts_unread: true,
})

/** The answer, which has to fit its contract. */
const parsed = async <S extends z.ZodType>(schema: S, asked: Promise<unknown>): Promise<z.output<S>> =>
  schema.parse(await asked)

const pageOf = <S extends z.ZodType>(item: S) =>
  z.object({ data: z.array(item), has_more: z.boolean(), next_cursor: z.string().nullable() })
