import { z } from 'zod'
import { event } from '../api/contract.ts'
import { openEnum } from './fields.ts'
import { WebhookSubscription } from './webhooks.ts'

const change = {
  subscription: WebhookSubscription.omit({ secrets: true }).meta({ id: 'WebhookSubscriptionSummary' }),
  reason: openEnum(['consecutive_failures', 'recovered', 'failing_too_long', 'gone', 'operator', 'enabled', 'manual']),
}

const data = z.object(change).meta({ id: 'WebhookSubscriptionChange' })

/** To the organization's other subscriptions: five attempts in a row have failed; deliveries wait, and are probed. */
export const subscriptionFailing = event({
  subject: 'event.webhooks.subscription-failing',
  summary: 'A webhook subscription began to fail',
  webhook: { type: 'webhook.subscription.failing', source: 'svc' },
  data,
})

export const subscriptionPaused = event({
  subject: 'event.webhooks.subscription-paused',
  summary: 'A webhook subscription was paused, or paused itself',
  webhook: { type: 'webhook.subscription.paused', source: 'svc' },
  data,
})

export const subscriptionResumed = event({
  subject: 'event.webhooks.subscription-resumed',
  summary: 'A webhook subscription is active again',
  webhook: { type: 'webhook.subscription.resumed', source: 'svc' },
  data,
})

export const subscriptionDisabled = event({
  subject: 'event.webhooks.subscription-disabled',
  summary: 'A webhook subscription was disabled',
  webhook: { type: 'webhook.subscription.disabled', source: 'svc' },
  data,
})

/** Made by `POST …/test` for one subscription; it never goes over the bus. */
export const subscriptionTested = event({
  subject: 'event.webhooks.subscription-tested',
  summary: 'A test event was asked for',
  webhook: { type: 'webhook.test', source: 'svc' },
  data: z.object({ subscription: change.subscription }),
})
