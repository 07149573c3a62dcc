import { z } from 'zod'
import { rpc } from '../api/contract.ts'
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
const ToldEvent = z.object({ id: z.string(), type: z.string(), phone_number_id: z.string().nullable() })

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

export const explainDelivery = rpc({
  subject: 'rpc.webhooks.explain-delivery',
  summary: 'The life of a delivery, from the records',
  body: z.object({ id: idOf('wbd') }),
  answer: z.object({ history: z.array(Moment) }),
  errors: ['resource_not_found'],
})

/** What each service answers of them. */
export const explains = {
  platform: { explainRequest },
  messaging: { explainMessage, findRequestedMessages },
  webhooks: { explainEvents, explainDelivery },
}
