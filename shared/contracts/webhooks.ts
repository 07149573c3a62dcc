import { z } from 'zod'
import { rpc } from '../contract.ts'
import { idOf } from '../ids.ts'
import { pageQuery } from '../page.ts'
import { phoneNumberId, text, time, timeInput } from './fields.ts'

/** The events a subscription may select (public API, section 6.3). */
export const eventType = z
  .enum([
    'message.received',
    'message.status',
    'message.sent',
    'message.revoked',
    'message.edited',
    'conversation.assigned',
    'conversation.closed',
    'contact.created',
    'contact.updated',
    'contact.identity_updated',
    'customer.created',
    'customer.updated',
    'customer.archived',
    'customer.onboarded',
    'customer.setup_link.created',
    'customer.setup_link.consumed',
    'webhook.subscription.failing',
    'webhook.subscription.paused',
    'webhook.subscription.resumed',
    'webhook.subscription.disabled',
  ])
  .meta({ id: 'EventType' })

export const subscriptionStatus = z.enum(['active', 'paused', 'disabled'])

export const WebhookSubscription = z
  .object({
    id: idOf('wbs'),
    object: z.literal('webhook_subscription'),
    url: z.url(),
    description: z.string().nullable(),
    events: z.array(z.string()),
    phone_number_ids: z
      .array(phoneNumberId)
      .nullable()
      .meta({ description: 'The numbers whose events are delivered; null and [] mean all.' }),
    status: subscriptionStatus,
    disabled_reason: z.string().nullable(),
    consecutive_failures: z.int().min(0),
    secrets: z.array(z.object({ id: idOf('sec'), created_at: time, expires_at: time.nullable() })),
    created_at: time,
    updated_at: time,
  })
  .meta({ id: 'WebhookSubscription' })

export const deliveryStatus = z.enum(['pending', 'succeeded', 'failed', 'dead'])

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
    error_code: z.string().nullable(),
    error_message: z.string().nullable(),
    created_at: time,
  })
  .meta({ id: 'WebhookDelivery' })

const exampleSubscription = {
  id: 'wbs_01JQ8Z6V0A7XJ2N5T9WQ3RBKCD',
  object: 'webhook_subscription',
  url: 'https://example.com/webhooks',
  description: 'production',
  events: ['message.received', 'message.status'],
  phone_number_ids: null,
  status: 'active',
  disabled_reason: null,
  consecutive_failures: 0,
  secrets: [{ id: 'sec_01JQ8Z6V0A7XJ2N5T9WQ3RBKCE', created_at: '2026-03-01T12:00:00.000Z', expires_at: null }],
  created_at: '2026-03-01T12:00:00.000Z',
  updated_at: '2026-03-01T12:00:00.000Z',
}

const exampleDelivery = {
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

const subscriptionParams = z.object({ id: idOf('wbs') })

export const createWebhookSubscription = rpc({
  subject: 'rpc.webhooks.create-webhook-subscription',
  summary: 'Subscribe a URL to events',
  description:
    'Answers the signing secret in `initial_secret`, this once. The URL must be https and public; other targets are refused unless the operator allows their network in `EGRESS_ALLOW_CIDRS`. Events without a number pass the filter `phone_number_ids`.',
  http: {
    method: 'POST',
    path: '/webhook_subscriptions',
    status: 201,
    tag: 'Webhook subscriptions',
    feature: 'webhooks',
  },
  body: z.object({
    url: text(1, 2048),
    events: z
      .array(eventType)
      .min(1)
      .max(100)
      .refine((events) => new Set(events).size === events.length, 'must not name an event twice'),
    description: text(0, 1000).nullable().optional(),
    phone_number_ids: z.array(phoneNumberId).max(1000).nullable().optional(),
  }),
  answer: WebhookSubscription.extend({ initial_secret: z.string() }),
  errors: ['feature_not_entitled'],
  example: {
    body: { url: 'https://example.com/webhooks', events: ['message.received', 'message.status'] },
    answer: { ...exampleSubscription, initial_secret: 'whsec_Zp0mJbHc1S5rKq0e3oZkq0G5w5m8n2x7c9v1b3n5m7Q' },
  },
})

export const listWebhookSubscriptions = rpc({
  subject: 'rpc.webhooks.list-webhook-subscriptions',
  summary: 'List the webhook subscriptions',
  http: { method: 'GET', path: '/webhook_subscriptions', tag: 'Webhook subscriptions' },
  query: z.object({ ...pageQuery, status: subscriptionStatus.optional() }),
  answer: WebhookSubscription,
  list: true,
  example: { answer: exampleSubscription },
})

export const getWebhookSubscription = rpc({
  subject: 'rpc.webhooks.get-webhook-subscription',
  summary: 'Get a webhook subscription',
  http: { method: 'GET', path: '/webhook_subscriptions/{id}', tag: 'Webhook subscriptions' },
  params: subscriptionParams,
  answer: WebhookSubscription,
  errors: ['resource_not_found'],
  example: { answer: exampleSubscription },
})

export const deleteWebhookSubscription = rpc({
  subject: 'rpc.webhooks.delete-webhook-subscription',
  summary: 'Delete a webhook subscription',
  description: 'Its waiting deliveries become `dead` and stay readable for 30 days.',
  http: { method: 'DELETE', path: '/webhook_subscriptions/{id}', tag: 'Webhook subscriptions' },
  params: subscriptionParams,
  answer: z.object({ id: idOf('wbs'), object: z.literal('webhook_subscription'), deleted: z.literal(true) }),
  errors: ['resource_not_found'],
  example: { answer: { id: exampleSubscription.id, object: 'webhook_subscription', deleted: true } },
})

export const listWebhookDeliveries = rpc({
  subject: 'rpc.webhooks.list-webhook-deliveries',
  summary: 'List the webhook deliveries',
  description: 'Newest first. `created_after` and `created_before` are exclusive.',
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
  answer: WebhookDelivery.extend({ payload: z.unknown() }),
  errors: ['resource_not_found'],
  example: { answer: { ...exampleDelivery, payload: { object: 'chat_business_account', entry: [] } } },
})
