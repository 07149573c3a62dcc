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
  body: z.object({ request_id: idOf('req'), organization_id: idOf('org'), at: time }),
  answer: z.object({ ids: z.array(idOf('msg')) }),
})

export const explainMessage = rpc({
  subject: 'rpc.messaging.explain-message',
  summary: 'The life of a message, from the records',
  body: z.object({ id: idOf('msg') }),
  answer: z.object({
    organization_id: idOf('org'),
    /** Of the request that made it; null for what the platform told us. */
    request_id: z.string().nullable(),
    /** The events that tell of it, by their ids. */
    event_ids: z.array(z.string()),
    history: z.array(Moment),
  }),
  errors: ['resource_not_found'],
})

export const explainEvents = rpc({
  subject: 'rpc.webhooks.explain-events',
  summary: 'The deliveries of events, with every attempt',
  body: z.object({ organization_id: idOf('org'), event_ids: z.array(z.string()) }),
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
