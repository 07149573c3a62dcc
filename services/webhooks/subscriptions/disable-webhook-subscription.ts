import type { Handler } from '@app/shared/api/contract.ts'
import { subscriptionDisabled } from '@app/shared/contracts/webhook-events.ts'
import type { disableWebhookSubscription as contract } from '@app/shared/contracts/webhooks.ts'
import type { Sql } from '@app/shared/database/database.ts'
import { Problem } from '@app/shared/api/problem.ts'
import type { App } from '../app.ts'
import { endLane, retakeLane } from '../attempts/wake-lane.ts'
import { findSubscription, toSubscription } from './subscriptions.ts'
import { tellOf } from './tell-of.ts'

/** By the operator, whatever organization it belongs to. What waits for it becomes dead when its lane is looked at. */
export const disableWebhookSubscription: Handler<App, typeof contract> = async (app, { body }) => {
  const { subscription_id: id } = body
  const organizationId = await app.sql.begin(async (tx) => {
    const [row] = await tx<{ organizationId: string; status: string }[]>`
      select organization_id, status from subscriptions where id = ${id} for no key update
    `
    if (!row) throw new Problem('resource_not_found', { param: 'subscription_id' })
    if (row.status === 'disabled') return row.organizationId
    await tx`
      update subscriptions set status = 'disabled', disabled_reason = 'operator', disabled_at = now(), paused_at = null,
        updated_at = now()
      where id = ${id}
    `
    await endLane(tx, id, row.organizationId)
    await tellOf(tx, subscriptionDisabled, [{ id }], 'operator')
    return row.organizationId
  })
  app.attempts.wake()
  app.relay.wake()
  return toSubscription(await findSubscription(app.sql, organizationId, id))
}

/** How long a subscription may stay paused by itself without a success. */
export const failingHours = 120

/** A sweep: subscriptions that have paused themselves and did not recover for five days are disabled. */
export function sweepFailing(sql: Sql): Promise<number> {
  return sql.begin(async (tx) => {
    const disabled = await tx<{ id: string }[]>`
      update subscriptions set status = 'disabled', disabled_reason = 'failing_too_long', disabled_at = now(),
        paused_at = null, updated_at = now()
      where id = any(array(
        select id from subscriptions
        where disabled_reason = 'consecutive_failures' and paused_at < now() - ${failingHours} * interval '1 hour'
        order by paused_at limit 100 for no key update skip locked
      )) returning id
    `
    // In the order in which all lock lanes.
    for (const { id } of disabled.toSorted((a, b) => (a.id < b.id ? -1 : 1))) await retakeLane(tx, id)
    await tellOf(tx, subscriptionDisabled, disabled, 'failing_too_long')
    return disabled.length
  })
}
