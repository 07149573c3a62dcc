import { z } from 'zod'
import { event, rpc } from '../api/contract.ts'
import { idOf } from '../values/ids.ts'
import { invalidField } from '../api/problem.ts'
import { pageQuery } from '../api/page.ts'
import { handledRangesOf } from '../events/handled-ranges.ts'
import { redriveEventsOf } from '../events/redrive.ts'
import { contactSummary, messageError, openEnum, openTo, phoneParams, time, timeInput } from './fields.ts'
import { AccountState } from './platform.ts'
import { ReadReceipt, Send } from './send.ts'
import { countSecretsOf, resealSecretsOf } from './secrets.ts'

export const SentMessage = z
  .object({
    id: idOf('msg'),
    object: z.literal('message'),
    to: z.string().optional(),
    type: z.string().optional(),
    status: z.enum(['queued', 'pending', 'sent', 'delivered', 'read', 'failed']),
    created_at: time.optional(),
    conversation_id: idOf('cnv').optional(),
    message_id: z.string().optional().meta({ description: "The upstream platform's id, once it is known." }),
    error: messageError.optional(),
  })
  .meta({ id: 'SentMessage' })

const direction = z.enum(['inbound', 'outbound']).meta({ id: 'MessageDirection' })
const messageStatus = z.enum(['pending', 'sent', 'delivered', 'read', 'failed']).meta({ id: 'MessageState' })
/** Those that people write and we send alike. */
export const commonMessageTypes = [
  'text',
  'image',
  'document',
  'video',
  'audio',
  'location',
  'contacts',
  'interactive',
  'button',
  'reaction',
]
const messageTypes = [...commonMessageTypes, 'template', 'unsupported']

export const Message = z
  .object({
    id: idOf('msg'),
    object: z.literal('message'),
    conversation_id: idOf('cnv'),
    to: z.string().nullable(),
    direction,
    type: z.string().meta(openTo(messageTypes)),
    content: z.string().nullable(),
    media_url: z.string().nullable(),
    media_status: openEnum(['ready', 'pending', 'failed'])
      .optional()
      .meta({ description: 'Of a message whose file is kept here, or is to be: `failed` is for good.' }),
    status: messageStatus,
    created_at: time,
    message_id: z.string().optional().meta({ description: "The upstream platform's id." }),
    error: messageError.optional(),
    unsupported: z.object({ type: z.string() }).optional(),
    played_at: time.optional(),
  })
  .meta({ id: 'Message' })

const exampleMessage = {
  id: 'msg_01JQ8Z6V0A7XJ2N5T9WQ3RBKCD',
  object: 'message',
  conversation_id: 'cnv_01JQ8Z6V0A7XJ2N5T9WQ3RBKCD',
  to: '+15550123456',
  direction: 'outbound',
  type: 'text',
  content: 'Hello',
  media_url: null,
  status: 'delivered',
  created_at: '2026-03-01T12:00:00.000Z',
  message_id: 'wamid.HBgLMTU1NTAxMjM0NTYVAgARGBI5',
}

export const sendMessage = rpc({
  subject: 'rpc.messaging.send-message',
  summary: 'Send a message, or a read receipt',
  description:
    'A body with `type` is a send, one with `status` a read receipt for an inbound message. Accepted messages are stored before the answer and reach the platform in the order of acceptance within a conversation. The outcome arrives as `message.sent` and `message.status`.',
  http: { method: 'POST', path: '/{phone_number_id}/messages', tag: 'Messages', asksOutside: true },
  params: phoneParams,
  body: z.union([Send, ReadReceipt]),
  variant: (body) => {
    if ('type' in body && 'status' in body)
      throw invalidField('type', 'Only one of `type`, for a send, and `status`, for a read receipt, may be given.')
    if ('type' in body) return Send
    if ('status' in body) return ReadReceipt
    const missing = 'message_id' in body && !('to' in body) ? 'status' : 'type'
    throw invalidField(missing, 'Either `type`, for a send, or `status`, for a read receipt, is required.')
  },
  answer: SentMessage,
  errors: [
    'resource_not_found',
    'invalid_phone_number',
    'outside_24h_window',
    'marketing_opted_out',
    'consent_required',
    'account_not_connected',
    'chat_number_not_verified',
    'account_restricted',
    'customer_suspended',
    'subscription_inactive',
    'quota_used_up',
    'feature_not_entitled',
    'template_not_found',
    'template_not_approved',
    'template_paused',
    'template_disabled',
    'template_param_count_mismatch',
    'template_param_format_mismatch',
    'media_upload_failed',
    // Of a read receipt, and of the look-up of a template that is not known here.
    'upstream_refused',
    'upstream_unavailable',
  ],
  example: {
    body: { messaging_product: 'chat', to: '+15550123456', type: 'text', text: { body: 'Hello' } },
    answer: {
      id: 'msg_01JQ8Z6V0A7XJ2N5T9WQ3RBKCD',
      object: 'message',
      to: '+15550123456',
      type: 'text',
      status: 'queued',
      created_at: '2026-03-01T12:00:00.000Z',
      conversation_id: 'cnv_01JQ8Z6V0A7XJ2N5T9WQ3RBKCD',
    },
  },
})

export const listMessages = rpc({
  subject: 'rpc.messaging.list-messages',
  summary: 'List the messages of a number',
  description: 'Newest first. `created_after` and `created_before` are exclusive.',
  http: { method: 'GET', path: '/{phone_number_id}/messages', tag: 'Messages' },
  params: phoneParams,
  query: z.object({
    ...pageQuery,
    conversation_id: idOf('cnv').optional(),
    direction: direction.optional(),
    status: messageStatus.optional(),
    created_after: timeInput.optional(),
    created_before: timeInput.optional(),
  }),
  answer: Message,
  list: true,
  errors: ['resource_not_found'],
  example: { answer: exampleMessage },
})

export const getMessage = rpc({
  subject: 'rpc.messaging.get-message',
  summary: 'Get a message',
  http: { method: 'GET', path: '/{phone_number_id}/messages/{id}', tag: 'Messages' },
  params: phoneParams.extend({ id: idOf('msg') }),
  answer: Message,
  errors: ['resource_not_found'],
  example: { answer: exampleMessage },
})

/** Stores upstream callbacks, whose signatures the gateway has proven, as packed bytes (`values/packed.ts`); answered after the commit. */
export const acceptCallbacks = rpc({
  subject: 'rpc.messaging.accept-callbacks',
  summary: 'Keep upstream callbacks',
  body: z.instanceof(Uint8Array),
  answer: z.object({ accepted: z.array(z.boolean()).describe('Of each, in their order') }),
})

/** What gateways of the version before ask while they are replaced. */
export const acceptCallback = rpc({
  subject: 'rpc.messaging.accept-callback',
  summary: 'Keep an upstream callback',
  body: z.instanceof(Uint8Array),
  answer: z.object({ accepted: z.literal(true) }),
})

/** Platform calls this before it answers its own caller, beside the event accountChanged. */
export const putSender = rpc({
  subject: 'rpc.messaging.put-sender',
  summary: "Take over an account's new state",
  body: AccountState,
  answer: z.object({ version: z.int() }),
})

/** The upstream's envelope, in our words, as `message.received` and `message.status` deliver it (section 6.4). */
const Passthrough = z.looseObject({
  object: z.literal('chat_business_account'),
  entry: z.array(
    z.looseObject({ id: z.string(), changes: z.array(z.looseObject({ field: z.string(), value: z.looseObject({}) })) }),
  ),
})

export const redriveEvents = redriveEventsOf('messaging')

export const handledRanges = handledRangesOf('messaging')

export const countSecrets = countSecretsOf('messaging')

export const resealSecrets = resealSecretsOf('messaging')

export const messagesRead = event({
  subject: 'event.messaging.messages-read',
  summary:
    'A read receipt was sent for the messages of a conversation up to one of them, or unread ones were deleted for their age',
  data: z.object({
    conversation_id: idOf('cnv'),
    /** How many of them had counted as unread. */
    read: z.int().min(1),
    /** The time of that message: what the person wrote before, in other conversations that have ended in this one, was read, too. */
    up_to: time.nullish(),
  }),
})

/**
 * What the platform said that bears on the state of a number or of its business account: platform, which owns accounts,
 * looks it up and settles it. One of `code` (of an error answer) and `change` (of a callback) is there.
 */
export const accountReported = event({
  subject: 'event.messaging.account-reported',
  summary: 'The platform said something that bears on the state of an account',
  data: z.object({
    /** Null: every number of the business account. */
    phone_number_id: z.string().nullable(),
    business_account_id: z.string(),
    /** The platform's error code, when a call was refused for the account's sake. */
    code: z.int().nullable(),
    /** A callback's `field` and `value`, in the platform's words. */
    change: z.object({ field: z.string(), value: z.unknown() }).nullable(),
    /** When the platform said it. */
    at: z.iso.datetime().optional(),
  }),
})

export const messageReceived = event({
  subject: 'event.messaging.message-received',
  summary: 'A customer sent a message to a connected number',
  webhook: { type: 'message.received', source: 'upstream' },
  data: Passthrough,
})

export const messageStatusReported = event({
  subject: 'event.messaging.message-status-reported',
  summary: 'The platform, or we in its place, reported the status of an outbound message',
  webhook: { type: 'message.status', source: 'upstream' },
  data: Passthrough,
})

const FileBlock = z.object({ link: z.url().nullable(), caption: z.string().nullable() }).meta({ id: 'SentFile' })

/** What message.sent has of an image, video, document or audio message. */
const sentFile = {
  media_url: z.url().nullable().optional(),
  /** `unavailable`: it was sent by an id of the platform, and we never had the file. */
  media_status: openEnum(['ready', 'pending', 'failed', 'unavailable']).optional(),
  image: FileBlock.optional(),
  video: FileBlock.optional(),
  document: FileBlock.optional(),
  audio: FileBlock.optional(),
}

export const messageSent = event({
  subject: 'event.messaging.message-sent',
  summary: 'An outbound message was accepted by the platform, which gave it an id',
  webhook: { type: 'message.sent', source: 'svc' },
  data: z.object({
    session: z.string(),
    direction: z.literal('outbound'),
    from_me: z.literal(true),
    timestamp: time,
    message: z.object({
      id: idOf('msg'),
      provider_id: z.string(),
      type: z.string(),
      body: z.string().nullable(),
      from: z.string().nullable(),
      to: z.string().nullable(),
      status: z.string(),
      source: openEnum(['api', 'broadcast', 'app']),
      reply_to_provider_id: z.string().nullable(),
      ...sentFile,
    }),
    conversation: z.object({ id: idOf('cnv'), status: z.string() }),
    contact: contactSummary,
    meta: z.object({
      phone_number_id: z.string(),
      display_phone_number: z.string().nullable(),
      provider: z.literal('chat'),
    }),
  }),
})
