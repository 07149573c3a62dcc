import type { Handler } from '@app/shared/api/contract.ts'
import type { deleteWebhookSubscription as contract } from '@app/shared/contracts/webhooks.ts'
import { notFound } from '@app/shared/api/problem.ts'
import type { App } from '../app.ts'
import { giveUp } from '../attempts/give-up.ts'
import { endLane } from '../attempts/wake-lane.ts'

/** Open deliveries become dead with it; those beyond what one transaction takes, and those in a call, by their lane. */
export const deleteWebhookSubscription: Handler<App, typeof contract> = async (app, { params }, caller) => {
  const { id } = params
  await app.sql.begin(async (tx) => {
    const { count } = await tx`
      delete from subscriptions where organization_id = ${caller.organizationId} and id = ${id}
    `
    if (count === 0) throw notFound()
    // In this order, as whoever begins attempts has the lane before its deliveries.
    await endLane(tx, id, caller.organizationId)
    await giveUp(tx, id, 'subscription_deleted')
  })
  app.attempts.wake()
  return { id, object: 'webhook_subscription', deleted: true }
}
