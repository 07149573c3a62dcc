import type { Handler } from '@app/shared/api/contract.ts'
import type { getWebhookDelivery as contract } from '@app/shared/contracts/webhook-deliveries.ts'
import { timeOf } from '@app/shared/values/ids.ts'
import { notFound } from '@app/shared/api/problem.ts'
import type { App } from '../app.ts'
import { deliveryColumns, type DeliveryRow, lastAttempt, openOrDead, toDelivery } from './deliveries.ts'

/** With the payload for as long as it is kept (30 days), null after that. */
export const getWebhookDelivery: Handler<App, typeof contract> = async ({ sql }, { params }, caller) => {
  const [row] = await sql<(DeliveryRow & { payload: string | null })[]>`
    select ${deliveryColumns(sql)}, e.payload
    from deliveries d ${openOrDead(sql)} ${lastAttempt(sql)}
      left join lateral (
        select payload from events
        where at = coalesce(d.event_at, ${timeOf(params.id)}::timestamptz) and organization_id = d.organization_id and event_id = d.event_id limit 1
      ) e on true
    where d.id = ${params.id} and d.organization_id = ${caller.organizationId}
  `
  if (!row) throw notFound()
  return { ...toDelivery(row), payload: row.payload === null ? null : (JSON.parse(row.payload) as unknown) }
}
