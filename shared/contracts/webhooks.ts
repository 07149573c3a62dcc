import { z } from 'zod'
import { rpc } from '../api/contract.ts'
import { idOf } from '../values/ids.ts'
import { pageQuery } from '../api/page.ts'
import { handledRangesOf } from '../events/handled-ranges.ts'
import { redriveEventsOf } from '../events/redrive.ts'
import { openTo, phoneNumberId, text, time } from './fields.ts'
import { exampleDelivery, WebhookDelivery } from './webhook-deliveries.ts'
import { countSecretsOf, resealSecretsOf } from './secrets.ts'

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

export const subscriptionStatus = z.enum(['active', 'paused', 'disabled']).meta({ id: 'WebhookSubscriptionStatus' })

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
    disabled_reason: z
      .string()
      .nullable()
      .meta(openTo(['consecutive_failures', 'failing_too_long', 'gone', 'operator'])),
    consecutive_failures: z.int().min(0),
    secrets: z.array(
      z.object({ id: idOf('sec'), created_at: time, expires_at: time.nullable() }).meta({ id: 'SigningSecretSummary' }),
    ),
    created_at: time,
    updated_at: time,
  })
  .meta({ id: 'WebhookSubscription' })

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

const subscriptionParams = z.object({ id: idOf('wbs') })

/** What an owner decides about a subscription. */
const settings = {
  url: text(1, 2048),
  events: z
    .array(eventType)
    .min(1)
    .max(100)
    .superRefine((events, ctx) => {
      const double = events.findIndex((event, n) => events.indexOf(event) !== n)
      if (double !== -1) ctx.addIssue({ code: 'custom', path: [double], message: 'must not name an event twice' })
    }),
  description: text(0, 1000).nullable().optional(),
  phone_number_ids: z.array(phoneNumberId).max(1000).nullable().optional(),
}

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
  body: z.object(settings),
  answer: WebhookSubscription.extend({ initial_secret: z.string() }).meta({ id: 'CreatedWebhookSubscription' }),
  errors: ['feature_not_entitled', 'too_many_webhook_subscriptions'],
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

export const updateWebhookSubscription = rpc({
  subject: 'rpc.webhooks.update-webhook-subscription',
  summary: 'Change, pause or resume a webhook subscription',
  description:
    'A paused subscription holds its deliveries, at most 100,000 of them and for seven days; when it is resumed they go out beside the new ones. `null` clears `description` and `phone_number_ids`. A new `url` is tried at once, whatever the old one waited for. `events` and `phone_number_ids` count for the events that happen from then on: what waits goes out.',
  http: { method: 'PATCH', path: '/webhook_subscriptions/{id}', tag: 'Webhook subscriptions', feature: 'webhooks' },
  params: subscriptionParams,
  body: z
    .object(settings)
    .partial()
    .extend({ status: z.enum(['active', 'paused']).optional() }),
  answer: WebhookSubscription,
  errors: ['resource_not_found', 'webhook_subscription_disabled'],
  example: { body: { status: 'paused' }, answer: { ...exampleSubscription, status: 'paused' } },
})

export const enableWebhookSubscription = rpc({
  subject: 'rpc.webhooks.enable-webhook-subscription',
  summary: 'Enable a disabled webhook subscription',
  description:
    'Makes the subscription active and resets its counters, at another URL if one is given. `replayable_count` says how many dead deliveries can be replayed (`POST /webhook_deliveries/replays`), counted up to the 100,000 of one replay. One that is active takes the URL, and is as it was otherwise.',
  http: {
    method: 'POST',
    path: '/webhook_subscriptions/{id}/enable',
    tag: 'Webhook subscriptions',
    feature: 'webhooks',
  },
  params: subscriptionParams,
  body: z.object({ url: settings.url.optional() }),
  answer: WebhookSubscription.extend({ replayable_count: z.int().min(0) }).meta({ id: 'EnabledWebhookSubscription' }),
  errors: ['resource_not_found'],
  example: { body: {}, answer: { ...exampleSubscription, replayable_count: 12 } },
})

/** For operators: an organization reads the reason `operator`. */
export const disableWebhookSubscription = rpc({
  subject: 'rpc.webhooks.disable-webhook-subscription',
  summary: 'Disable a webhook subscription',
  body: z.object({ subscription_id: idOf('wbs') }),
  answer: WebhookSubscription,
  errors: ['resource_not_found'],
})

export const testWebhookSubscription = rpc({
  subject: 'rpc.webhooks.test-webhook-subscription',
  summary: 'Send a test event',
  description: 'A `webhook.test` event to this subscription alone, whatever it selects. The answer names its delivery.',
  http: {
    method: 'POST',
    path: '/webhook_subscriptions/{id}/test',
    status: 202,
    tag: 'Webhook subscriptions',
    feature: 'webhooks',
  },
  params: subscriptionParams,
  answer: WebhookDelivery.pick({
    id: true,
    object: true,
    subscription_id: true,
    event_type: true,
    event_id: true,
    status: true,
  }).meta({ id: 'TestWebhookDelivery' }),
  errors: ['resource_not_found', 'webhook_subscription_disabled'],
  example: {
    answer: {
      id: exampleDelivery.id,
      object: 'webhook_delivery',
      subscription_id: exampleSubscription.id,
      event_type: 'webhook.test',
      event_id: 'evt_01JQ8Z6V0A7XJ2N5T9WQ3RBKCF',
      status: 'pending',
    },
  },
})

export const createWebhookSecret = rpc({
  subject: 'rpc.webhooks.create-webhook-secret',
  summary: 'Add a signing secret',
  description:
    'Answers the secret in `secret`, this once. From now on every delivery carries a signature of each active secret: deploy it, then revoke the old one. At most five are active at a time.',
  http: {
    method: 'POST',
    path: '/webhook_subscriptions/{id}/secrets',
    status: 201,
    tag: 'Webhook subscriptions',
    feature: 'webhooks',
  },
  params: subscriptionParams,
  body: z.object({ expires_in_hours: z.int().min(1).max(8760).optional() }),
  answer: z
    .object({
      id: idOf('sec'),
      object: z.literal('webhook_signing_secret'),
      secret: z.string(),
      created_at: time,
      expires_at: time.nullable(),
    })
    .meta({ id: 'WebhookSigningSecret' }),
  errors: ['resource_not_found', 'webhook_subscription_disabled', 'too_many_secrets'],
  example: {
    body: {},
    answer: {
      id: 'sec_01JQ8Z6V0A7XJ2N5T9WQ3RBKCE',
      object: 'webhook_signing_secret',
      secret: 'whsec_Zp0mJbHc1S5rKq0e3oZkq0G5w5m8n2x7c9v1b3n5m7Q',
      created_at: '2026-03-01T12:00:00.000Z',
      expires_at: null,
    },
  },
})

export const deleteWebhookSecret = rpc({
  subject: 'rpc.webhooks.delete-webhook-secret',
  summary: 'Revoke a signing secret',
  description: 'Nothing is signed with it any more. One secret without an expiry must remain.',
  http: {
    method: 'DELETE',
    path: '/webhook_subscriptions/{id}/secrets/{secret_id}',
    tag: 'Webhook subscriptions',
  },
  params: z.object({ id: idOf('wbs'), secret_id: idOf('sec') }),
  answer: z
    .object({ id: idOf('sec'), object: z.literal('webhook_signing_secret'), deleted: z.literal(true) })
    .meta({ id: 'DeletedWebhookSigningSecret' }),
  errors: ['resource_not_found', 'webhook_subscription_disabled', 'last_secret'],
  example: { answer: { id: 'sec_01JQ8Z6V0A7XJ2N5T9WQ3RBKCE', object: 'webhook_signing_secret', deleted: true } },
})

export const deleteWebhookSubscription = rpc({
  subject: 'rpc.webhooks.delete-webhook-subscription',
  summary: 'Delete a webhook subscription',
  description:
    'Its waiting deliveries become `dead` and can be read as long as all others: for 90 days, their payloads for 30.',
  http: { method: 'DELETE', path: '/webhook_subscriptions/{id}', tag: 'Webhook subscriptions' },
  params: subscriptionParams,
  answer: z
    .object({ id: idOf('wbs'), object: z.literal('webhook_subscription'), deleted: z.literal(true) })
    .meta({ id: 'DeletedWebhookSubscription' }),
  errors: ['resource_not_found'],
  example: { answer: { id: exampleSubscription.id, object: 'webhook_subscription', deleted: true } },
})

export const redriveEvents = redriveEventsOf('webhooks')

export const handledRanges = handledRangesOf('webhooks')

export const countSecrets = countSecretsOf('webhooks')

export const resealSecrets = resealSecretsOf('webhooks')
