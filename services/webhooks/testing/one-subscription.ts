import { beforeEach } from 'vitest'
import { enableWebhookSubscription } from '../subscriptions/enable-webhook-subscription.ts'
import { updateWebhookSubscription } from '../subscriptions/update-webhook-subscription.ts'
import type { EventType } from './app.ts'
import { webhooksAndReceiver } from './webhooks-and-receiver.ts'

type Changes = Parameters<typeof updateWebhookSubscription>[1]['body']

/** The service, an endpoint, and a subscription of its own for each test of a file. */
export function oneSubscription(events: EventType[] = ['message.received']) {
  const both = webhooksAndReceiver()
  const one = Object.assign(both, {
    id: '',
    patch: (body: Changes, caller = both.webhooks.caller) =>
      both.webhooks.ask(updateWebhookSubscription, { params: { id: one.id }, body }, caller),
    enable: (body: { url?: string } = {}) =>
      both.webhooks.ask(enableWebhookSubscription, { params: { id: one.id }, body }),
    gotIds: () => both.receiver.got.map(({ headers }) => headers['x-svc-event-id']),
  })
  beforeEach(async () => {
    await both.webhooks.clear()
    both.receiver.got.length = 0
    both.receiver.respondWith((response) => void response.end('ok'))
    one.id = (await both.webhooks.subscribe({ url: both.receiver.url, events })).id
  })
  return one
}
