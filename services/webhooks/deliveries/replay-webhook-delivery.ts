import type { Answer, Handler } from '@app/shared/api/contract.ts'
import { replayWebhookDelivery as contract } from '@app/shared/contracts/webhook-deliveries.ts'
import type { TransactionSql } from '@app/shared/database/database.ts'
import { once } from '@app/shared/idempotency/idempotency.ts'
import { newId, timeOf } from '@app/shared/values/ids.ts'
import { notFound, Problem } from '@app/shared/api/problem.ts'
import type { App } from '../app.ts'
import { openDeliveries } from './open-deliveries.ts'

export const replayWebhookDelivery: Handler<App, typeof contract> = async (app, { params }, caller) => {
  const { organizationId } = caller
  const answer = await once(app, contract, caller, async (tx): Promise<Answer<typeof contract>> => {
    const original = await findOriginal(tx, organizationId, params.id)
    const id = newId('wbd')
    await openDeliveries(tx, [{ ...original, id, organizationId, replayedFrom: params.id }])
    const { subscriptionId } = original
    return {
      id,
      object: 'webhook_delivery',
      subscription_id: subscriptionId,
      status: 'pending',
      replayed_from: params.id,
    }
  })
  app.attempts.wake()
  return answer
}

interface Original {
  subscriptionId: string
  eventType: string
  eventId: string
  eventAt: Date
}

/** Throws why it cannot be replayed: gone is its subscription (404), its payload, or it was never tried. */
async function findOriginal(tx: TransactionSql, organizationId: string, id: string): Promise<Original> {
  const [row] = await tx<(Original & { status: string | null; isPending: boolean; isKept: boolean })[]>`
    select d.subscription_id, d.event_type, d.event_id, s.status, o.id is not null as is_pending, e.at as event_at,
      exists (select from events where at = e.at and organization_id = d.organization_id and event_id = d.event_id)
        as is_kept
    from deliveries d left join subscriptions s on s.id = d.subscription_id
      left join lateral (select id from due_deliveries where id = d.id and not tried limit 1) o on true
      cross join lateral (select coalesce(d.event_at, ${timeOf(id)}::timestamptz) as at) e
    where d.id = ${id} and d.organization_id = ${organizationId}
  `
  if (!row) throw notFound()
  const { status, isPending, isKept, ...original } = row
  if (status === null)
    throw new Problem('resource_not_found', { message: 'The subscription of this delivery was deleted.' })
  if (status === 'disabled') throw new Problem('webhook_subscription_disabled')
  if (isPending) throw new Problem('delivery_pending')
  if (!isKept) throw new Problem('payload_expired')
  return original
}
