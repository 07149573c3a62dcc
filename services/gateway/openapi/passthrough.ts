import { commonMessageTypes } from '@app/shared/contracts/messaging.ts'
import { referenceTo } from './schemas.ts'

/**
 * The platform's envelope as subscribers get it (public API, section 6.4). It goes through as it came, so only what
 * is sure to be there is required, and fields that are not named here may stand beside.
 */

interface Property {
  [keyword: string]: unknown
}

/** The parts that have a name, as components. */
export const passthroughParts: Record<string, Property> = {}

function part(name: string, schema: Property): Property {
  passthroughParts[name] = schema
  return { ...referenceTo(name) }
}

const text: Property = { type: 'string' }
const textOrNull: Property = { type: ['string', 'null'] }
const userId = {
  type: 'string',
  description: 'The business-scoped user id of a person: a `to` for who hides the number.',
}
const epoch = { type: 'string', pattern: String.raw`^\d+$`, description: 'Epoch seconds.', examples: ['1772366400'] }

/** Without a format clients in Go take it for a number of 32 bits, which is a metre off. */
const degrees: Property = { type: 'number', format: 'double' }

const object = (properties: Record<string, Property>, required: string[] = Object.keys(properties)): Property => ({
  type: 'object',
  properties,
  ...(required.length > 0 && { required }),
})
const list = (items: Property): Property => ({ type: 'array', items })
const one = (items: Property): Property => ({ ...list(items), minItems: 1, maxItems: 1 })
/** A block of which the platform may leave out anything. */
const loose = (properties: Record<string, Property>) => object(properties, [])

const file = part(
  'InboundFile',
  loose({
    id: text,
    mime_type: text,
    sha256: text,
    caption: text,
    filename: text,
    voice: { type: 'boolean' },
  }),
)
const choice = part('InteractiveReply', object({ id: text, title: text }))

const message = part(
  'InboundMessage',
  object(
    {
      id: { type: 'string', description: "The platform's id: what a reply names as `context.message_id`." },
      type: {
        type: 'string',
        description: 'Names the block beside it. The set is open: pass over types that you do not know.',
        'x-extensible-enum': [...commonMessageTypes, 'unsupported'],
      },
      from: { type: 'string', description: 'The number in digits; absent when the person hides it.' },
      from_user_id: userId,
      timestamp: epoch,
      context: loose({ id: text, from: text }),
      text: object({ body: text }),
      image: file,
      document: file,
      video: file,
      audio: file,
      location: loose({ latitude: degrees, longitude: degrees, name: text, address: text }),
      contacts: list(loose({})),
      interactive: loose({ type: text, button_reply: choice, list_reply: choice }),
      button: loose({ text, payload: text }),
      reaction: loose({ message_id: text, emoji: { type: 'string', description: 'Empty: taken away.' } }),
      unsupported: loose({ type: text }),
    },
    ['id', 'type', 'timestamp'],
  ),
)

const status = part(
  'StatusUpdate',
  object(
    {
      id: { type: 'string', description: 'The `message_id` of a message; `msg_…` of one that the platform never had.' },
      status: { type: 'string', examples: ['sent', 'delivered', 'read', 'failed', 'played'] },
      timestamp: epoch,
      recipient_id: { type: 'string', description: 'The number in digits; absent when the person hides it.' },
      recipient_user_id: userId,
      conversation: loose({ id: text, origin: loose({ type: text }), expiration_timestamp: text }),
      pricing: loose({ billable: { type: 'boolean' }, pricing_model: text, type: text, category: text }),
      errors: list(
        object(
          {
            code: { type: 'integer', description: "The platform's; -1 where the reason is ours." },
            title: text,
            message: text,
            error_data: loose({ details: text }),
            href: text,
            fbtrace_id: text,
            error_subcode: { type: 'integer' },
          },
          ['code'],
        ),
      ),
    },
    ['id', 'status', 'timestamp'],
  ),
)

const svc = part(
  'InboundContext',
  object(
    {
      conversation_id: text,
      contact_id: text,
      message_id: { type: 'string', description: 'Ours: `msg_…`.' },
      phone_number_id: text,
      labels: list(object({ id: text, name: text, color: text })),
      conversation: object({ status: text, assigned_to: textOrNull }),
      contact: object({ name: textOrNull, phone_number: textOrNull }),
      media_url: textOrNull,
      media_status: { type: 'string', 'x-extensible-enum': ['ready', 'pending', 'failed'] },
    },
    ['conversation_id', 'contact_id', 'message_id', 'phone_number_id', 'labels', 'conversation', 'contact'],
  ),
)

const metadata = part(
  'NumberMetadata',
  object({ display_phone_number: textOrNull, phone_number_id: text }, ['phone_number_id']),
)
const sender = part(
  'SenderProfile',
  loose({ profile: loose({ name: text, username: text }), chat_id: text, user_id: userId }),
)

const envelopeOf = (part: Record<string, Property>, beside: Record<string, Property> = {}) => {
  const value = object(
    {
      messaging_product: { type: 'string', const: 'chat' },
      metadata,
      contacts: list(sender),
      ...part,
    },
    ['metadata', ...Object.keys(part)],
  )
  const change = object({ field: { type: 'string', const: 'messages' }, value })
  const entry = object({ id: { type: 'string', description: 'The business account.' }, changes: one(change) })
  return object({ object: { type: 'string', const: 'chat_business_account' }, entry: one(entry), ...beside })
}

/** By the event's name. */
export const passthrough: Record<string, Property> = {
  'message.received': envelopeOf({ messages: one(message) }, { svc }),
  'message.status': envelopeOf({ statuses: one(status) }),
}
