import { z } from 'zod'
import { event, rpc } from '../api/contract.ts'
import { idOf } from '../values/ids.ts'
import { pageQuery } from '../api/page.ts'
import {
  chatAccount,
  contactSummary,
  labelReference,
  phoneNumberId,
  phoneParams,
  text,
  time,
  timeInput,
} from './fields.ts'

export const conversationStatus = z.enum(['open', 'resolved', 'pending']).meta({ id: 'ConversationStatus' })

export const Conversation = z
  .object({
    id: idOf('cnv'),
    object: z.literal('conversation'),
    status: conversationStatus,
    contact: contactSummary,
    chat_account: chatAccount,
    assignee: z
      .object({ id: z.string(), name: z.string().nullable(), email: z.string().nullable() })
      .meta({ id: 'Assignee' })
      .nullable(),
    unread_count: z.int().min(0),
    last_message_at: time.nullable(),
    last_inbound_at: time.nullable(),
    created_at: time,
    updated_at: time,
  })
  .meta({ id: 'Conversation' })

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

const exampleLabelId = 'lbl_01JQ8Z6V0A7XJ2N5T9WQ3RBKCE'

const conversationParams = phoneParams.extend({ id: idOf('cnv') })

export const listConversations = rpc({
  subject: 'rpc.directory.list-conversations',
  summary: 'List the conversations of a number',
  description:
    'By `last_message_at`, newest first, those without a message last. With `updated_since` only those that changed after that moment, by `updated_at`, newest first: begin with the first time of 1970, go on with the newest `updated_at` that this list has shown, and no change is missed. Here a change shows within a second, when no older one can come any more; other answers show it at once.',
  http: { method: 'GET', path: '/{phone_number_id}/conversations', tag: 'Conversations', etag: true },
  params: phoneParams,
  query: z.object({
    ...pageQuery,
    status: conversationStatus.optional(),
    contact_id: idOf('ctc').optional().meta({ description: 'The conversation of this contact.' }),
    updated_since: timeInput.optional().meta({
      description: 'Only what changed after this moment, and in another order: for keeping a copy up to date.',
    }),
  }),
  answer: Conversation,
  list: true,
  errors: ['resource_not_found'],
  example: { answer: exampleConversation },
})

export const getConversation = rpc({
  subject: 'rpc.directory.get-conversation',
  summary: 'Get a conversation',
  http: { method: 'GET', path: '/{phone_number_id}/conversations/{id}', tag: 'Conversations' },
  params: conversationParams,
  answer: Conversation,
  errors: ['resource_not_found'],
  example: { answer: exampleConversation },
})

export const updateConversation = rpc({
  subject: 'rpc.directory.update-conversation',
  summary: "Change a conversation's status or assignee",
  description:
    'At least one of the two. `assigned_to` is a user id of your own choice; null clears it. Of a conversation that has ended in another, that other one is changed, and answered.',
  http: { method: 'PATCH', path: '/{phone_number_id}/conversations/{id}', tag: 'Conversations' },
  params: conversationParams,
  body: z
    .object({ status: conversationStatus.optional(), assigned_to: text(1, 64).nullable().optional() })
    .refine((body) => body.status !== undefined || body.assigned_to !== undefined, {
      path: ['status'],
      message: 'this or assigned_to is required',
    }),
  answer: Conversation,
  errors: ['resource_not_found'],
  example: { body: { status: 'open', assigned_to: null }, answer: exampleConversation },
})

const LabelAttachment = z
  .object({ conversation_id: idOf('cnv'), label_id: idOf('lbl'), attached: z.boolean() })
  .meta({ id: 'ConversationLabel' })

export const attachConversationLabel = rpc({
  subject: 'rpc.directory.attach-conversation-label',
  summary: 'Attach a label to a conversation',
  description:
    'Of the same team. Attaching it twice changes nothing. A conversation that has ended in another has it there, as `conversation_id` says.',
  http: { method: 'POST', path: '/{phone_number_id}/conversations/{id}/labels', tag: 'Conversations' },
  params: conversationParams,
  body: labelReference,
  answer: LabelAttachment,
  errors: ['resource_not_found'],
  example: {
    body: { label_id: exampleLabelId },
    answer: { conversation_id: exampleConversation.id, label_id: exampleLabelId, attached: true },
  },
})

export const detachConversationLabel = rpc({
  subject: 'rpc.directory.detach-conversation-label',
  summary: 'Detach a label from a conversation',
  http: { method: 'DELETE', path: '/{phone_number_id}/conversations/{id}/labels/{label_id}', tag: 'Conversations' },
  params: conversationParams.extend({ label_id: idOf('lbl') }),
  answer: LabelAttachment,
  errors: ['resource_not_found'],
  example: { answer: { conversation_id: exampleConversation.id, label_id: exampleLabelId, attached: false } },
})

export const conversationAssigned = event({
  subject: 'event.directory.conversation-assigned',
  summary: 'A conversation was given to another user, or to nobody',
  webhook: { type: 'conversation.assigned', source: 'svc' },
  data: z.object({
    conversation: z.object({
      id: idOf('cnv'),
      object: z.literal('conversation'),
      status: conversationStatus,
      phone_number_id: phoneNumberId,
    }),
    assignee: z.object({
      user_id: z.string().nullable(),
      /** The team of the number. */
      team_id: idOf('team'),
      previous_user_id: z.string().nullable(),
    }),
  }),
})

export const conversationClosed = event({
  subject: 'event.directory.conversation-closed',
  summary: 'A conversation became resolved',
  webhook: { type: 'conversation.closed', source: 'svc' },
  data: z.object({
    conversation: z.object({
      id: idOf('cnv'),
      object: z.literal('conversation'),
      status: z.literal('resolved'),
      /** Null: an API key did it, or it goes on in another. */
      closed_by_user_id: z.string().nullable(),
      phone_number_id: phoneNumberId,
    }),
  }),
})
