import { z } from 'zod'
import { notice, rpc } from '../api/contract.ts'
import { idOf } from '../values/ids.ts'
import { handledRangesOf } from '../events/handled-ranges.ts'
import { redriveEventsOf } from '../events/redrive.ts'
import { conversationStatus } from './conversations.ts'
import { bsuid, phoneParams, text, time } from './fields.ts'
import { AccountState } from './platform.ts'

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
  repeatable: true,
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

/**
 * Messaging calls this after a read receipt, beside the event messagesRead of the same id; after one that read nothing new, which has no
 * event, for what came before it in conversations that have ended since.
 */
export const noteRead = rpc({
  subject: 'rpc.directory.note-read',
  summary: 'Take messages that were read off the unread count of a conversation',
  body: z.object({
    event_id: idOf('evt'),
    conversation_id: idOf('cnv'),
    read: z.int().min(0),
    /** As in the event. */
    up_to: time.nullish(),
  }),
  answer: z.object({ noted: z.literal(true) }),
})

/** Platform calls this before it answers its own caller, beside the event accountChanged. */
export const putAccount = rpc({
  subject: 'rpc.directory.put-account',
  summary: "Take over an account's new state",
  body: AccountState,
  answer: z.object({ version: z.int() }),
})

/** Messaging, which remembers what openConversation answered, asks anew from then on. Said after each change of what `Parties` shows. */
export const partiesChanged = notice({
  subject: 'notice.directory.parties-changed',
  summary: 'Contacts or conversations are gone, or are not what they were',
  data: z.object({ ids: z.array(z.union([idOf('ctc'), idOf('cnv')])) }),
  nothing: { ids: [] },
})

export const redriveEvents = redriveEventsOf('directory')

export const handledRanges = handledRangesOf('directory')
