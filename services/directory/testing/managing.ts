import { systemCaller } from '@app/shared/bus/ask.ts'
import type { Caller, Handler, Page, Rpc, WholeAnswer } from '@app/shared/api/contract.ts'
import * as contacts from '@app/shared/contracts/contacts.ts'
import * as conversations from '@app/shared/contracts/conversations.ts'
import * as labels from '@app/shared/contracts/labels.ts'
import { newId } from '@app/shared/values/ids.ts'
import type { z } from 'zod'
import type { App } from '../app.ts'
import { attachContactLabel } from '../contacts/attach-contact-label.ts'
import { bulkLabelContacts } from '../contacts/bulk-label-contacts.ts'
import { createContact } from '../contacts/create-contact.ts'
import { deleteContact } from '../contacts/delete-contact.ts'
import { detachContactLabel } from '../contacts/detach-contact-label.ts'
import { updateContact } from '../contacts/update-contact.ts'
import { attachConversationLabel } from '../conversations/attach-conversation-label.ts'
import { detachConversationLabel } from '../conversations/detach-conversation-label.ts'
import { updateConversation } from '../conversations/update-conversation.ts'
import { createLabel } from '../labels/create-label.ts'
import { deleteLabel } from '../labels/delete-label.ts'
import { getLabel } from '../labels/get-label.ts'
import { listLabels } from '../labels/list-labels.ts'
import { updateLabel } from '../labels/update-label.ts'

/** Whose operations, under which number's path. */
interface Asker {
  organizationId: string
  phoneNumberId: string
  teamId: string
}

/** What the public API changes, asked by an organization. Answers are what the client gets. */
export function managing(app: App, { organizationId, phoneNumberId, teamId }: Asker) {
  async function ask<C extends Rpc>(contract: C, handler: Handler<App, C>, input: Input<C>, key?: string) {
    const idempotency = key === undefined ? undefined : { key, fingerprint: JSON.stringify(input) }
    const answer: object = await (handler as AnyHandler)(
      app,
      {
        params: contract.params.parse({ phone_number_id: phoneNumberId, ...input.params }),
        query: contract.query.parse(input.query ?? {}),
        body: contract.body.parse(input.body),
      },
      { ...systemCaller(organizationId), idempotency },
    )
    if (!isWhole(answer))
      return { status: 200, replayed: false, data: contract.answer.parse(answer) as z.output<C['answer']> }
    const { data } = JSON.parse(Buffer.from(answer.body).toString()) as { data: z.output<C['answer']> }
    return { status: answer.status, replayed: answer.replayed, data }
  }

  const create = (body: z.input<typeof contacts.createContact.body>, key?: string) =>
    ask(contacts.createContact, createContact, { body }, key)
  const label = async (name: string, team_id = teamId) =>
    (await ask(labels.createLabel, createLabel, { body: { name, team_id } })).data

  return {
    organizationId,
    create,
    label,
    /** As many contacts, in the order of their ids. */
    many: async (count: number) => {
      const made = await Promise.all(
        Array.from({ length: count }, (_, n) => create({ phone_number: `+1${2_000_000_000 + n}` })),
      )
      return made.map(({ data }) => data.id).toSorted()
    },
    /** The same, put there at once. */
    async crowd(count: number) {
      const ids = Array.from({ length: count }, () => newId('ctc')).toSorted()
      await app.sql`
        with made as (
          insert into contacts (organization_id, id, phone_number_id, phone_number, created_at, updated_at)
          select ${organizationId}, id, ${phoneNumberId}, '+1' || (2000000000 + n), now(), now()
          from unnest(${ids}::text[]) with ordinality u(id, n) returning *
        )
        insert into identities (organization_id, phone_number_id, kind, value, contact_id)
        select organization_id, phone_number_id, 'phone', phone_number, id from made
      `
      return ids
    },
    update: async (id: string, body: z.input<typeof contacts.updateContact.body>) =>
      (await ask(contacts.updateContact, updateContact, { params: { id }, body })).data,
    remove: (id: string) => ask(contacts.deleteContact, deleteContact, { params: { id } }),
    attach: (id: string, label_id: string, key?: string) =>
      ask(contacts.attachContactLabel, attachContactLabel, { params: { id }, body: { label_id } }, key),
    detach: (id: string, label_id: string) =>
      ask(contacts.detachContactLabel, detachContactLabel, { params: { id, label_id } }),
    bulk: async (contact_ids: string[], label_id: string, operation: 'attach' | 'detach') =>
      (await ask(contacts.bulkLabelContacts, bulkLabelContacts, { body: { contact_ids, label_id, operation } })).data,
    attachToConversation: (id: string, label_id: string) =>
      ask(conversations.attachConversationLabel, attachConversationLabel, { params: { id }, body: { label_id } }),
    detachFromConversation: (id: string, label_id: string) =>
      ask(conversations.detachConversationLabel, detachConversationLabel, { params: { id, label_id } }),
    updateConversation: async (id: string, body: z.input<typeof conversations.updateConversation.body>) =>
      (await ask(conversations.updateConversation, updateConversation, { params: { id }, body })).data,
    createLabel: (body: z.input<typeof labels.createLabel.body>, key?: string) =>
      ask(labels.createLabel, createLabel, { body }, key),
    getLabel: async (id: string) => (await ask(labels.getLabel, getLabel, { params: { id } })).data,
    updateLabel: async (id: string, body: z.input<typeof labels.updateLabel.body>) =>
      (await ask(labels.updateLabel, updateLabel, { params: { id }, body })).data,
    deleteLabel: (id: string) => ask(labels.deleteLabel, deleteLabel, { params: { id } }),
    listLabels: async (query: z.input<typeof labels.listLabels.query> = {}) => {
      const page = await listLabels(app, { params: {}, query, body: undefined }, systemCaller(organizationId))
      return page as Page<z.output<typeof labels.Label>>
    },
  }
}

type AnyHandler = (app: App, input: unknown, caller: Caller) => Promise<object>
const isWhole = (answer: object): answer is WholeAnswer => 'whole' in answer

interface Input<C extends Rpc> {
  params?: Record<string, string>
  query?: z.input<C['query']>
  body?: z.input<C['body']>
}

/** Tells the directory of a team, as the event does. */
export async function tellTeam({ sql }: Pick<App, 'sql'>, organizationId: string, id = newId('team')): Promise<string> {
  await sql`
    insert into teams (organization_id, id, name, told_at) values (${organizationId}, ${id}, 'Support', now())
    on conflict do nothing
  `
  return id
}
