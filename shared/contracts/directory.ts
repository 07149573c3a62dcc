import { z } from 'zod'
import { event, rpc } from '../contract.ts'
import { idOf } from '../ids.ts'
import { pageQuery } from '../page.ts'
import { redriveEventsOf } from '../redrive.ts'
import { chatAccount, phoneNumberId, phoneParams, text, time } from './fields.ts'
import { AccountState } from './platform.ts'

export const bsuid = z
  .string()
  .regex(/^[A-Z]{2}\.[A-Za-z0-9]{1,128}$/)
  .meta({ description: 'Business-scoped user id.', example: 'US.13491208655302741918' })

export const Contact = z
  .object({
    id: idOf('ctc'),
    object: z.literal('contact'),
    phone_number: z.string().nullable().meta({ description: 'E.164; null for a contact known by bsuid alone.' }),
    bsuid: z.string().nullable(),
    parent_bsuid: z.string().nullable(),
    username: z.string().nullable(),
    name: z.string().nullable(),
    email: z.string().nullable(),
    metadata: z.record(z.string(), z.unknown()).nullable(),
    chat_account: z.object({
      phone_number: z.string().nullable(),
      phone_number_id: z.string().nullable(),
      customer: z.object({ id: idOf('cus'), name: z.string() }).nullable(),
    }),
    created_at: time,
    updated_at: time,
  })
  .meta({ id: 'Contact' })

export const conversationStatus = z.enum(['open', 'resolved', 'pending'])

export const Conversation = z
  .object({
    id: idOf('cnv'),
    object: z.literal('conversation'),
    status: conversationStatus,
    contact: z.object({ id: idOf('ctc'), phone_number: z.string().nullable(), name: z.string().nullable() }),
    chat_account: chatAccount,
    assignee: z.object({ id: z.string(), name: z.string().nullable(), email: z.string().nullable() }).nullable(),
    unread_count: z.int().min(0),
    last_message_at: time.nullable(),
    last_inbound_at: time.nullable(),
    created_at: time,
    updated_at: time,
  })
  .meta({ id: 'Conversation' })

const exampleContact = {
  id: 'ctc_01JQ8Z6V0A7XJ2N5T9WQ3RBKCD',
  object: 'contact',
  phone_number: '+15550123456',
  bsuid: null,
  parent_bsuid: null,
  username: null,
  name: 'Ana',
  email: null,
  metadata: null,
  chat_account: { phone_number: '+15550001111', phone_number_id: '106540352242922', customer: null },
  created_at: '2026-03-01T12:00:00.000Z',
  updated_at: '2026-03-01T12:00:00.000Z',
}

const exampleConversation = {
  id: 'cnv_01JQ8Z6V0A7XJ2N5T9WQ3RBKCD',
  object: 'conversation',
  status: 'open',
  contact: { id: 'ctc_01JQ8Z6V0A7XJ2N5T9WQ3RBKCD', phone_number: '+15550123456', name: 'Ana' },
  chat_account: { phone_number: '+15550001111' },
  assignee: null,
  unread_count: 1,
  last_message_at: '2026-03-01T12:00:00.000Z',
  last_inbound_at: '2026-03-01T12:00:00.000Z',
  created_at: '2026-03-01T12:00:00.000Z',
  updated_at: '2026-03-01T12:00:00.000Z',
}

export const listContacts = rpc({
  subject: 'rpc.directory.list-contacts',
  summary: 'List the contacts of a number',
  description: 'Newest first. `phone_number` finds by the number as given or as the platform writes it.',
  http: { method: 'GET', path: '/{phone_number_id}/contacts', tag: 'Contacts' },
  params: phoneParams,
  query: z.object({ ...pageQuery, phone_number: z.string().min(1).max(40).optional() }),
  answer: Contact,
  list: true,
  errors: ['resource_not_found', 'invalid_phone_number'],
  example: { answer: exampleContact },
})

export const getContact = rpc({
  subject: 'rpc.directory.get-contact',
  summary: 'Get a contact',
  http: { method: 'GET', path: '/{phone_number_id}/contacts/{id}', tag: 'Contacts' },
  params: phoneParams.extend({ id: idOf('ctc') }),
  answer: Contact,
  errors: ['resource_not_found'],
  example: { answer: exampleContact },
})

export const listConversations = rpc({
  subject: 'rpc.directory.list-conversations',
  summary: 'List the conversations of a number',
  description: 'By `last_message_at`, newest first, those without a message last.',
  http: { method: 'GET', path: '/{phone_number_id}/conversations', tag: 'Conversations' },
  params: phoneParams,
  query: z.object({ ...pageQuery, status: conversationStatus.optional(), contact_id: idOf('ctc').optional() }),
  answer: Conversation,
  list: true,
  errors: ['resource_not_found'],
  example: { answer: exampleConversation },
})

export const getConversation = rpc({
  subject: 'rpc.directory.get-conversation',
  summary: 'Get a conversation',
  http: { method: 'GET', path: '/{phone_number_id}/conversations/{id}', tag: 'Conversations' },
  params: phoneParams.extend({ id: idOf('cnv') }),
  answer: Conversation,
  errors: ['resource_not_found'],
  example: { answer: exampleConversation },
})

/** The two parties of a conversation, as messaging shows them in events. */
export const Parties = z.object({
  conversation: z.object({ id: idOf('cnv'), status: conversationStatus, assigned_to: z.string().nullable() }),
  contact: z.object({ id: idOf('ctc'), phone_number: z.string().nullable(), name: z.string().nullable() }),
})

/**
 * The conversation that a send goes to. Checks the window (unless `window` is `any`) and the marketing opt-out first, and
 * creates the contact (with its event) and the conversation only when the send may go out.
 */
export const openConversation = rpc({
  subject: 'rpc.directory.open-conversation',
  summary: 'Find or open the conversation with a recipient',
  params: phoneParams,
  body: z.object({
    recipient: z.union([z.object({ phone_number: z.string() }), z.object({ bsuid })]),
    window: z.enum(['open', 'any']),
    marketing: z.boolean(),
  }),
  answer: Parties.extend({
    /** Until when free-form messages may be sent; null when the recipient never wrote. */
    window_until: time.nullable(),
  }),
  errors: ['resource_not_found', 'outside_24h_window', 'marketing_opted_out', 'consent_required'],
})

/**
 * Records that a customer wrote: contact (made when new, with its event), conversation (reopened when resolved), unread
 * count, window. The same `upstream_id` again changes nothing and answers the same.
 */
export const recordInbound = rpc({
  subject: 'rpc.directory.record-inbound',
  summary: 'Record an inbound message with its contact and conversation',
  params: phoneParams,
  body: z.object({
    upstream_id: z.string().min(1),
    message_id: idOf('msg'),
    sent_at: time,
    /** The identities in the callback; at least one of wa_id and bsuid. */
    wa_id: z.string().nullable(),
    bsuid: bsuid.nullable(),
    parent_bsuid: z.string().nullable(),
    username: z.string().nullable(),
    profile_name: text(0, 1000).nullable(),
    /** Reactions do not count as unread. */
    counts_unread: z.boolean(),
  }),
  answer: Parties.extend({
    window_until: time.nullable(),
    labels: z.array(z.object({ id: idOf('lbl'), name: z.string(), color: z.string() })),
  }),
  errors: ['resource_not_found'],
})

/** Messaging calls this after a read receipt, beside the event messagesRead of the same id. */
export const noteRead = rpc({
  subject: 'rpc.directory.note-read',
  summary: 'Take messages that were read off the unread count of a conversation',
  body: z.object({ event_id: idOf('evt'), conversation_id: idOf('cnv'), read: z.int().min(1) }),
  answer: z.object({ noted: z.literal(true) }),
})

/** Platform calls this before it answers its own caller, beside the event accountChanged. */
export const putAccount = rpc({
  subject: 'rpc.directory.put-account',
  summary: "Take over an account's new state",
  body: AccountState,
  answer: z.object({ version: z.int() }),
})

export const redriveEvents = redriveEventsOf('directory')

export const contactCreated = event({
  subject: 'event.directory.contact-created',
  summary: 'A contact row was inserted',
  webhook: { type: 'contact.created', source: 'svc' },
  data: z.object({
    contact: z.object({
      id: idOf('ctc'),
      object: z.literal('contact'),
      phone_number: z.string().nullable(),
      name: z.string().nullable(),
      email: z.string().nullable(),
      metadata: z.record(z.string(), z.unknown()).nullable(),
      phone_number_id: phoneNumberId,
      created_at: time,
      updated_at: time,
    }),
  }),
})

const identity = z.object({
  bsuid: z.string().nullable(),
  parent_bsuid: z.string().nullable(),
  phone_number: z.string().nullable(),
})

export const contactIdentityUpdated = event({
  subject: 'event.directory.contact-identity-updated',
  summary: 'A contact is known by another business-scoped user id or number, or two contacts were found to be one',
  webhook: { type: 'contact.identity_updated', source: 'svc' },
  data: z.object({
    contact: z.object({
      id: idOf('ctc'),
      object: z.literal('contact'),
      phone_number: z.string().nullable(),
      name: z.string().nullable(),
      phone_number_id: phoneNumberId,
    }),
    previous: identity,
    current: identity,
    changed_at: time,
  }),
})
