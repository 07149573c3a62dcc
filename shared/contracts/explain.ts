import { z } from 'zod'
import { type Rpc, rpc } from '../api/contract.ts'
import { idOf } from '../values/ids.ts'
import { time } from './fields.ts'

// `npm run admin -- explain ID`: each service tells what its records know, as moments of one history.

export const Moment = z.object({
  /** Null: how it stands now. */
  at: time.nullable(),
  what: z.string(),
  details: z.record(z.string(), z.unknown()).optional(),
})

export type Moment = z.output<typeof Moment>

type Details = Record<string, unknown>

export const momentAt = (at: Date, what: string, details?: Details): Moment => ({
  at: at.toISOString(),
  what,
  ...(details && { details }),
})

/** How it stands now. */
export const standing = (what: string, details?: Details): Moment => ({ at: null, what, ...(details && { details }) })

const history = z.object({ history: z.array(Moment) })

/** What the records know of one thing, by its id, of whatever organization. */
const explainRecord = <Id extends z.ZodType<string>>(subject: Rpc['subject'], summary: string, id: Id) =>
  rpc({ subject, summary, body: z.object({ id }), answer: history, errors: ['resource_not_found'] })

/** A request of the public API. Its record leads to what it made. */
export const explainRequest = rpc({
  subject: 'rpc.platform.explain-request',
  summary: 'What the API log knows of a request',
  body: z.object({ id: idOf('req') }),
  answer: z.object({ organization_id: z.string().nullable(), at: time.nullable(), history: z.array(Moment) }),
  errors: ['resource_not_found'],
})

/** The messages that a request made. */
export const findRequestedMessages = rpc({
  subject: 'rpc.messaging.find-requested-messages',
  summary: 'The messages that a request made',
  /** Without its organization: of whatever organization. */
  body: z.object({ request_id: idOf('req'), organization_id: idOf('org').optional(), at: time }),
  answer: z.object({ ids: z.array(idOf('msg')) }),
})

/** An event that was, or is to be, told to subscribers. */
const ToldEvent = z.object({
  id: z.string(),
  type: z.string(),
  phone_number_id: z.string().nullable(),
  /** The subscription that it tells of, which does not get it. */
  except: z.string().nullish(),
})

export type ToldEvent = z.output<typeof ToldEvent>

export const explainMessage = rpc({
  subject: 'rpc.messaging.explain-message',
  summary: 'The life of a message, from the records',
  /** Ours, or the platform's. */
  body: z.object({ id: z.string() }),
  answer: z.object({
    /** Null: it is not there (yet, or any more), and callbacks or a deletion are known of it. */
    id: idOf('msg').nullable().optional(),
    organization_id: idOf('org'),
    /** Of the request that made it; null for what the platform told us. */
    request_id: z.string().nullable(),
    /** The events that tell of it, by their ids. */
    event_ids: z.array(z.string()),
    /** Those that are told already: who has no delivery of them has a reason. */
    told: z.array(ToldEvent).optional(),
    history: z.array(Moment),
  }),
  errors: ['resource_not_found'],
})

export const explainEvents = rpc({
  subject: 'rpc.webhooks.explain-events',
  summary: 'The deliveries of events, with every attempt',
  body: z.object({
    /** Left out: of whatever organization. */
    organization_id: idOf('org').optional(),
    event_ids: z.array(z.string()),
    /** Events of the organization that were told: of those without deliveries it is said why. */
    told: z.array(ToldEvent).optional(),
  }),
  answer: z.object({ history: z.array(Moment) }),
})

export const explainDelivery = explainRecord(
  'rpc.webhooks.explain-delivery',
  'The life of a delivery, from the records',
  idOf('wbd'),
)

export const explainSubscription = explainRecord(
  'rpc.webhooks.explain-subscription',
  'How a subscription stands, and why',
  idOf('wbs'),
)

export const explainContact = explainRecord('rpc.directory.explain-contact', 'What became of a contact', idOf('ctc'))

export const explainConversation = explainRecord(
  'rpc.directory.explain-conversation',
  'How a conversation stands: its window, what is unread, what it was merged with',
  idOf('cnv'),
)

export const explainQueue = rpc({
  subject: 'rpc.messaging.explain-queue',
  summary: 'What waits to be sent in a conversation',
  body: z.object({ conversation_id: idOf('cnv') }),
  answer: history,
})

export const explainTemplate = explainRecord(
  'rpc.messaging.explain-template',
  'How a template stands, and what sends with it get',
  idOf('tmpl'),
)

export const explainSenders = rpc({
  subject: 'rpc.messaging.explain-senders',
  summary: 'Whether sends from numbers are taken, at what pace, and what waits there',
  body: z.object({ phone_number_ids: z.array(z.string()) }),
  answer: history,
})

export const explainAccounts = rpc({
  subject: 'rpc.platform.explain-accounts',
  summary: 'How numbers stand with the platform and with their organizations',
  /** An account, or the platform's id of a number or of a business account. */
  body: z.object({ id: z.string() }),
  answer: z.object({ phone_number_ids: z.array(z.string()), history: z.array(Moment) }),
  errors: ['resource_not_found'],
})

export const explainCustomer = explainRecord(
  'rpc.platform.explain-customer',
  'How a customer stands, with its numbers and setup links',
  idOf('cus'),
)

export const explainSetupLink = explainRecord(
  'rpc.platform.explain-setup-link',
  'What was done with a setup link',
  idOf('csl'),
)

export const explainKey = explainRecord(
  'rpc.platform.explain-key',
  'Whether an API key is good, what it may ask a minute, and when it asked last',
  idOf('key'),
)

export const explainOrganization = explainRecord(
  'rpc.platform.explain-organization',
  'What an organization may do, and what it has',
  idOf('org'),
)

const ofOrganization = { body: z.object({ id: idOf('org') }), answer: history }

export const explainOrganizationSends = rpc({
  subject: 'rpc.messaging.explain-organization-sends',
  summary: 'What an organization has sent of its quota, and what waits to be sent',
  ...ofOrganization,
})

export const explainOrganizationDeliveries = rpc({
  subject: 'rpc.webhooks.explain-organization-deliveries',
  summary: 'How the subscriptions of an organization stand, and what waits for them',
  ...ofOrganization,
})

export const explainReplay = explainRecord(
  'rpc.webhooks.explain-replay',
  'How far a replay is, and what holds it up',
  idOf('rpl'),
)

export const explainMedia = explainRecord(
  'rpc.messaging.explain-media',
  'What became of a file: where it is, who uses it, when it goes',
  idOf('med'),
)

export const explainLabel = explainRecord('rpc.directory.explain-label', 'What became of a label', idOf('lbl'))

/** What a service has recorded of an event of its own; nothing, when it is another's, or older than its outbox. */
export const explainRecordedEventOf = <S extends 'platform' | 'messaging' | 'directory' | 'webhooks'>(service: S) =>
  rpc({
    subject: `rpc.${service}.explain-recorded-event` as const,
    summary: `Whether ${service} has recorded an event, and whether it is published`,
    body: z.object({ id: idOf('evt') }),
    answer: z.object({
      event: z
        .object({
          organization_id: z.string(),
          /** Null: it is for services alone. */
          type: z.string().nullable(),
          phone_number_id: z.string().nullable(),
          /** As in `told`. */
          except: z.string().nullish(),
          is_published: z.boolean(),
        })
        .nullable(),
      history: z.array(Moment),
    }),
  })

/** Of the keys in the database of the service, which may be that of all. */
export const explainIdempotencyKeyOf = <S extends 'platform' | 'messaging' | 'directory' | 'webhooks'>(service: S) =>
  rpc({
    subject: `rpc.${service}.explain-idempotency-key` as const,
    summary: 'What an idempotency key was used for',
    body: z.object({ organization_id: idOf('org'), key: z.string() }),
    /** `request_id`: the request that it answered, where its answer tells. */
    answer: z.object({ request_id: z.string().nullable(), history: z.array(Moment) }),
    errors: ['resource_not_found'],
  })

/** What each service answers of them. */
export const explains = {
  platform: {
    explainRequest,
    explainAccounts,
    explainCustomer,
    explainSetupLink,
    explainKey,
    explainOrganization,
    explainIdempotencyKey: explainIdempotencyKeyOf('platform'),
    explainRecordedEvent: explainRecordedEventOf('platform'),
  },
  messaging: {
    explainMessage,
    findRequestedMessages,
    explainQueue,
    explainTemplate,
    explainSenders,
    explainMedia,
    explainOrganizationSends,
    explainIdempotencyKey: explainIdempotencyKeyOf('messaging'),
    explainRecordedEvent: explainRecordedEventOf('messaging'),
  },
  directory: {
    explainContact,
    explainConversation,
    explainLabel,
    explainIdempotencyKey: explainIdempotencyKeyOf('directory'),
    explainRecordedEvent: explainRecordedEventOf('directory'),
  },
  webhooks: {
    explainEvents,
    explainDelivery,
    explainSubscription,
    explainReplay,
    explainOrganizationDeliveries,
    explainIdempotencyKey: explainIdempotencyKeyOf('webhooks'),
    explainRecordedEvent: explainRecordedEventOf('webhooks'),
  },
}
