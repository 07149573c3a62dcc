import { z } from 'zod'
import { rpc } from '../api/contract.ts'
import { idOf } from '../values/ids.ts'
import { pageQuery } from '../api/page.ts'
import { openTo, time, timeInput } from './fields.ts'

export const deliveryStatus = z.enum(['pending', 'succeeded', 'failed', 'dead']).meta({ id: 'WebhookDeliveryStatus' })

/** Why a delivery was not made; what the endpoint answered stands in `response_status`. */
export const deliveryErrorCodes = [
  'timeout',
  'connection_refused',
  'connection_failed',
  'dns_error',
  'tls_error',
  'invalid_response',
  'blocked_address',
  'redirect_not_followed',
  'gone',
  'expired',
  'subscription_disabled',
  'subscription_deleted',
  'interrupted',
  'internal_error',
] as const
export type DeliveryErrorCode = (typeof deliveryErrorCodes)[number]

export const WebhookDelivery = z
  .object({
    id: idOf('wbd'),
    object: z.literal('webhook_delivery'),
    subscription_id: idOf('wbs'),
    event_type: z.string(),
    event_id: z.string(),
    status: deliveryStatus,
    attempt_count: z.int().min(0),
    last_attempt_at: time.nullable(),
    next_attempt_at: time.nullable(),
    response_status: z.int().nullable(),
    response_body_snippet: z.string().nullable(),
    duration_ms: z.int().nullable(),
    replayed_from: idOf('wbd').nullable(),
    error_code: z.string().nullable().meta(openTo(deliveryErrorCodes)),
    error_message: z.string().nullable(),
    created_at: time,
  })
  .meta({ id: 'WebhookDelivery' })

export const exampleDelivery = {
  id: 'wbd_01JQ8Z6V0A7XJ2N5T9WQ3RBKCD',
  object: 'webhook_delivery',
  subscription_id: 'wbs_01JQ8Z6V0A7XJ2N5T9WQ3RBKCD',
  event_type: 'message.status',
  event_id: 'wamid.HBgLMTU1NTAxMjM0NTYVAgARGBI5:delivered',
  status: 'succeeded',
  attempt_count: 1,
  last_attempt_at: '2026-03-01T12:00:01.000Z',
  next_attempt_at: null,
  response_status: 200,
  response_body_snippet: 'ok',
  duration_ms: 12,
  replayed_from: null,
  error_code: null,
  error_message: null,
  created_at: '2026-03-01T12:00:00.500Z',
}

export const listWebhookDeliveries = rpc({
  subject: 'rpc.webhooks.list-webhook-deliveries',
  summary: 'List the webhook deliveries',
  description:
    'Newest first; those with status `dead` are the dead-letter queue. `created_after` and `created_before` are exclusive.',
  http: { method: 'GET', path: '/webhook_deliveries', tag: 'Webhook deliveries' },
  query: z.object({
    ...pageQuery,
    subscription_id: idOf('wbs').optional(),
    status: deliveryStatus.optional(),
    event_type: z.string().min(1).max(100).optional(),
    event_id: z.string().min(1).max(400).optional(),
    created_after: timeInput.optional(),
    created_before: timeInput.optional(),
  }),
  answer: WebhookDelivery,
  list: true,
  example: { answer: exampleDelivery },
})

export const getWebhookDelivery = rpc({
  subject: 'rpc.webhooks.get-webhook-delivery',
  summary: 'Get a webhook delivery with its payload',
  http: { method: 'GET', path: '/webhook_deliveries/{id}', tag: 'Webhook deliveries' },
  params: z.object({ id: idOf('wbd') }),
  answer: WebhookDelivery.extend({ payload: z.unknown().meta({ description: 'The body as it is POSTed.' }) }).meta({
    id: 'WebhookDeliveryWithPayload',
  }),
  errors: ['resource_not_found'],
  example: { answer: { ...exampleDelivery, payload: { object: 'chat_business_account', entry: [] } } },
})

export const replayWebhookDelivery = rpc({
  subject: 'rpc.webhooks.replay-webhook-delivery',
  summary: 'Replay a webhook delivery',
  description:
    'Makes a new delivery of the same event to the same subscription, at its present URL, beginning with attempt 1. The event keeps its id. Payloads are kept for 30 days. A delivery of a deleted subscription cannot be replayed (404).',
  http: {
    method: 'POST',
    path: '/webhook_deliveries/{id}/replay',
    status: 202,
    tag: 'Webhook deliveries',
    feature: 'webhooks',
  },
  params: z.object({ id: idOf('wbd') }),
  answer: WebhookDelivery.pick({ id: true, object: true, subscription_id: true, status: true })
    .extend({
      replayed_from: idOf('wbd'),
    })
    .meta({ id: 'ReplayedWebhookDelivery' }),
  errors: ['resource_not_found', 'webhook_subscription_disabled', 'delivery_pending', 'payload_expired'],
  example: {
    answer: {
      id: 'wbd_01JQ8Z6V0A7XJ2N5T9WQ3RBKCF',
      object: 'webhook_delivery',
      subscription_id: exampleDelivery.subscription_id,
      status: 'pending',
      replayed_from: exampleDelivery.id,
    },
  },
})
