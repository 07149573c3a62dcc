import { z } from 'zod'
import { event, rpc } from '../api/contract.ts'
import { idOf } from '../values/ids.ts'
import { time, timeInput } from './fields.ts'

/** What callbacks change beside new messages and statuses. */

/** Works through the raw callbacks since a time again; what they did already changes nothing. */
export const redriveCallbacks = rpc({
  subject: 'rpc.messaging.redrive-callbacks',
  summary: 'Work through the kept callbacks of the platform again',
  body: z.object({ since: timeInput }),
  answer: z.object({
    service: z.string(),
    /** Callbacks that wait to be worked through again. */
    callbacks: z.int(),
    /** Ask again from here, when there were more than fit into one call; null when all are through. */
    next_since: time.nullable(),
  }),
})

/** The platform refused a message (code 131050) since its recipient wants no marketing messages. */
export const marketingStopped = event({
  subject: 'event.messaging.marketing-stopped',
  summary: 'The platform said that a recipient wants no marketing messages',
  data: z.object({
    phone_number_id: z.string(),
    contact_id: idOf('ctc'),
    /** To whom it was sent, `+E164` or a user id: the contact may be gone when this is heard. */
    recipient: z.string().nullish(),
    at: time,
  }),
})

const message = {
  message_id: idOf('msg'),
  provider_id: z.string(),
  conversation_id: idOf('cnv'),
  contact_id: idOf('ctc'),
  contact_phone_number: z.string().nullable(),
  phone_number_id: z.string(),
  display_phone_number: z.string().nullable(),
}

export const messageRevoked = event({
  subject: 'event.messaging.message-revoked',
  summary: 'A customer deleted a message for everyone',
  webhook: { type: 'message.revoked', source: 'svc' },
  data: z.object({ ...message, revoked_at: time }),
})

export const messageEdited = event({
  subject: 'event.messaging.message-edited',
  summary: 'A customer edited a message',
  webhook: { type: 'message.edited', source: 'svc' },
  data: z.object({
    ...message,
    new_content: z.string().nullable(),
    /** The first version, which no edit overwrites. */
    original_content: z.string().nullable(),
    edited_at: time,
    edit_history: z.array(z.object({ content: z.string().nullable(), edited_at: time })),
  }),
})
