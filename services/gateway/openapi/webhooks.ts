import { type Event, isEvent } from '@app/shared/api/contract.ts'
import { passthrough } from './passthrough.ts'
import { capital, type Schemas } from './schemas.ts'

/** An event that is delivered to subscribers. */
type Delivered = Event & { webhook: NonNullable<Event['webhook']> }

/** What subscribers are sent, by the event's name. */
export function webhooksOf(modules: object[], schemas: Schemas): Record<string, object> {
  const events = modules.flatMap((module) => Object.values(module) as unknown[]).filter(isDelivered)
  return Object.fromEntries(events.map((event) => [event.webhook.type, { post: postOf(event, schemas) }]))
}

const isDelivered = (contract: unknown): contract is Delivered => isEvent(contract) && contract.webhook !== undefined

const postOf = ({ summary, webhook, data }: Delivered, schemas: Schemas) => ({
  operationId: nameOf(webhook.type),
  summary,
  description: `${summary}. Verify \`X-Svc-Signature\` over the raw body before you believe it.`,
  tags: [eventsTag],
  security: [],
  parameters: webhookHeaders,
  requestBody: {
    required: true,
    content: {
      'application/json': {
        schema: schemas.named(`${capital(nameOf(webhook.type))}Event`, envelopeOf({ webhook, data }, schemas)),
      },
    },
  },
  responses: {
    '2XX': { description: 'You have it.' },
    410: { description: 'You want no more of them: the subscription is disabled.' },
    '4XX': { description: 'It comes again later.' },
  },
})

/** `message.sent` → `messageSent`. */
const nameOf = (type: string) => type.replaceAll(/[._](\w)/g, (_, letter: string) => letter.toUpperCase())

export const eventsTag = 'Webhook events'

const envelopeOf = ({ webhook, data }: Pick<Delivered, 'webhook' | 'data'>, schemas: Schemas) =>
  passthrough[webhook.type] ?? nativeEnvelope(webhook.type, data, schemas)

const nativeEnvelope = (type: string, data: Delivered['data'], schemas: Schemas) => ({
  type: 'object',
  properties: {
    id: { type: 'string', description: 'As in `X-Svc-Event-Id`.' },
    type: { type: 'string', const: type },
    created_at: { type: 'string', format: 'date-time' },
    data: schemas.of(data, 'output'),
  },
  required: ['id', 'type', 'created_at', 'data'],
})

const header = (name: string, description: string, schema: object = { type: 'string' }) => ({
  name,
  in: 'header',
  required: true,
  description,
  schema,
})

const webhookHeaders = [
  header('X-Svc-Event', 'The event, as in `events` of the subscription.'),
  header('X-Svc-Source', "Whether the body is the platform's envelope or ours.", {
    type: 'string',
    enum: ['upstream', 'svc'],
  }),
  header('X-Svc-Event-Id', 'The key to drop repetitions by: the same in every attempt and every replay.'),
  header('X-Svc-Delivery-Id', 'This delivery, as in `GET /webhook_deliveries/{id}`.'),
  header('X-Svc-Attempt', '1, 2, 3 …', { type: 'integer', minimum: 1 }),
  header('X-Svc-Signature', '`t=<unix seconds>,v1=<hex>[,v1=<hex>…]`.'),
  header('X-Svc-Signature-256', 'The same as `X-Svc-Signature`.'),
]
