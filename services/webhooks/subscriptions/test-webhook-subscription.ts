import type { Answer, Handler } from '@app/shared/api/contract.ts'
import { subscriptionTested } from '@app/shared/contracts/webhook-events.ts'
import { testWebhookSubscription as contract } from '@app/shared/contracts/webhooks.ts'
import { recorded } from '@app/shared/events/events.ts'
import { once } from '@app/shared/idempotency/idempotency.ts'
import { newId, timeOf } from '@app/shared/values/ids.ts'
import type { App } from '../app.ts'
import { openDeliveries } from '../deliveries/open-deliveries.ts'
import { lockSubscription, refuseDisabled, toSubscription } from './subscriptions.ts'

/** Its event goes to one subscription alone, so it is recorded here and does not go over the bus. */
export const testWebhookSubscription: Handler<App, typeof contract> = async (app, { params }, caller) => {
  const { organizationId } = caller
  const answer = await once(app, contract, caller, async (tx): Promise<Answer<typeof contract>> => {
    const subscription = await lockSubscription(tx, organizationId, params.id)
    refuseDisabled(subscription)
    const id = newId('wbd')
    const at = timeOf(id)
    const { headers, payload } = recorded(
      subscriptionTested,
      { subscription: toSubscription(subscription) },
      { organizationId, createdAt: at },
    )
    const { event: eventId, type = '', source = 'svc' } = headers
    await tx`
      insert into events (at, organization_id, event_id, type, source, payload)
      values (${at}, ${organizationId}, ${eventId}, ${type}, ${source}, ${payload})
    `
    const subscriptionId = params.id
    const delivery = { id, organizationId, subscriptionId, eventType: type, eventId, eventAt: at }
    await openDeliveries(tx, [delivery])
    return {
      id,
      object: 'webhook_delivery',
      subscription_id: subscriptionId,
      event_type: type,
      event_id: eventId,
      status: 'pending',
    }
  })
  app.attempts.wake()
  return answer
}
